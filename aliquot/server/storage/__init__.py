"""Objects in memory, changes for watches, and the log on disk."""
