"""What a cluster needs for Aliquot to run on it, as objects to apply."""
