"""Requests in, answers out."""
