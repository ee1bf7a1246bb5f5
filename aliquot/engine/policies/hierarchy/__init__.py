"""Koordinator's quota trees: every quota may use its runtime, an exact share of what there is."""
