"""The embedded Kubernetes API server: `kubectl` and any client work against it.

A request goes through `http`, `api`, `rules`, `admission` and `storage`; `controllers` act on what
is stored. The server never calls another cluster, and knows nothing of the scheduler.
"""
