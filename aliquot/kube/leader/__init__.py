"""Which replica leads: the rules, and the Lease."""
