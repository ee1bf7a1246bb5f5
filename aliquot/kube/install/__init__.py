"""The objects to apply so that Aliquot runs on a cluster."""
