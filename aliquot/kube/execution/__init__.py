"""The way out: what the engine decided, written to the cluster, and nothing else."""
