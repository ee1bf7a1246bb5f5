"""Koordinator quota trees: each quota may use its runtime, an exact share of the cluster."""
