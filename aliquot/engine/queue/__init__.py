"""The claims that wait, in the order in which they are tried."""
