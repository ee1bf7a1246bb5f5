"""Leader election: the rules, and the Lease that they are applied to."""
