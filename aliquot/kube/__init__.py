"""Aliquot on Kubernetes: reads objects, runs the engine, writes its decisions; and the webhook."""
