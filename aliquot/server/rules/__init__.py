"""What objects must be beyond their shape, and the fields that are filled in."""
