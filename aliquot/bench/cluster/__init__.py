"""A whole cluster, measured: schedulers as processes, on an API server of their own."""
