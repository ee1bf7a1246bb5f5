"""Volumes, claims and classes of Kubernetes, and the engine's values of them."""
