"""Volcano's queues, gangs, Jobs and weights of namespaces."""
