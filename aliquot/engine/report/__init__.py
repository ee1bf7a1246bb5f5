"""How everything stands: quotas, GPU quotas, gangs, and what a resize would do."""
