"""The engine's records of nodes, quotas, pods and bookings, kept up to date event by event."""
