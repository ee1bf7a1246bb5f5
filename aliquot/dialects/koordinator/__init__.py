"""Koordinator's quota trees: keys on quotas and pods, rules of a tree, what it writes."""
