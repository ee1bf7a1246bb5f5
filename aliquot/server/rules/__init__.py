"""Validation beyond the schema, defaults, and the metadata that the server writes."""
