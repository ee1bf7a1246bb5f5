"""The smallest sets of changes that let a waiting pod start, each tried on a copy of the moment."""
