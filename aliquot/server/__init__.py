"""The embedded Kubernetes API server: what it accepts, keeps, and shows."""
