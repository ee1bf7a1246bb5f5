"""Kinds that are answered, not stored: reviews of access, and metrics."""
