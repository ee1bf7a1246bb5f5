"""nos elastic quotas: as `capacity`, and what is borrowed is shared fairly, by preemption."""
