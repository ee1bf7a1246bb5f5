"""Volcano's queues: what each deserves by weight, shared by its namespaces and jobs in turns."""
