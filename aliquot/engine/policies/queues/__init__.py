"""Volcano queues: each queue may use what it deserves, and its namespaces share that by weight."""
