"""The objects of a cluster, real or simulated, as the engine's events; and their statuses."""
