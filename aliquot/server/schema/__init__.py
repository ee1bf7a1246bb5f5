"""The shapes of objects, and whether one has the shape of its kind."""
