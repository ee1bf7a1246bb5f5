"""A whole cluster, measured: schedulers as processes, each on a fresh API server."""
