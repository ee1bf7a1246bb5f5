"""Kubernetes' own objects, and what all dialects are written in."""
