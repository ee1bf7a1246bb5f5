"""The subresources binding, eviction and scale."""
