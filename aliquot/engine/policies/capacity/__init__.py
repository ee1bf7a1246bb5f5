"""KEP-9 capacity scheduling: min is guaranteed, what is idle of it may be borrowed up to max."""
