"""A whole cluster, measured: an API server, schedulers beside it, and a load that we make."""
