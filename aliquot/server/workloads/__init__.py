"""Controllers of workloads: they make, count and replace pods."""
