"""The choice of a node for a pod: constraints, preferences, free capacity, scores, bookings."""
