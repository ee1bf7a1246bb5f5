"""Streams of events and the decisions that follow: random clusters, and their canonical text."""
