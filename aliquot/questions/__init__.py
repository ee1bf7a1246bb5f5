"""Questions to a cluster: what they are asked of, and the answers as plain data."""
