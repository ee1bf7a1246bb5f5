"""Kubernetes objects to engine objects and back; the rules they must obey. Pure functions."""
