"""A cluster simulated in virtual time: objects in, the fate of every pod out."""
