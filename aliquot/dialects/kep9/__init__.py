"""KEP-9 capacity scheduling, and the quota objects that Koordinator and nos share with it."""
