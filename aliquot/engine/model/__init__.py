"""Values: what a cluster is made of, what happens to it, what is decided, and why."""
