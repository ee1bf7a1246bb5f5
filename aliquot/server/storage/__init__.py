"""Objects in memory, recent changes for watches, and the log on disk."""
