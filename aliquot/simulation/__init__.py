"""The embedded cluster in virtual time: objects in, what became of every pod out."""
