"""KEP-9 capacity scheduling: min is guaranteed, and idle min may be borrowed up to max."""
