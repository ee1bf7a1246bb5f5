"""Checks of a set of objects, for the commands, the admission webhook and the simulation."""
