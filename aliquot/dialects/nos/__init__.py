"""nos elastic quotas: GPU memory, and how many GB the cards of a node have."""
