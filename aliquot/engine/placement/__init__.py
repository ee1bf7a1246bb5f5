"""Which node: constraints, preferences, free capacity, and the best node for a pod."""
