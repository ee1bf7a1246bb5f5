"""Who asks for what and who holds what: nodes, quotas, pods, kept up to date event by event."""
