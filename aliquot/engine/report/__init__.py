"""Reports: the figures of quotas, GPU quotas and gangs, the audit, the check of a resize."""
