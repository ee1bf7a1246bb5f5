"""Binding, eviction and scale: parts of objects that are asked for by themselves."""
