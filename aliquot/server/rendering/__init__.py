"""The representations of objects in responses: whole, as Tables, metadata only."""
