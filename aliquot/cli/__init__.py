"""The commands: thin wrappers of library calls, and how their results look."""
