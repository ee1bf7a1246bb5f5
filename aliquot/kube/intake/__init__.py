"""The way in: what the watches show, in order, put into the mirror and told to the engine."""
