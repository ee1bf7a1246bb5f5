"""Reclaim: the victim search and its parts, and evictions after lowered bounds."""
