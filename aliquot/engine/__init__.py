"""The pure part: events in, decisions out. No I/O, no clock, no randomness, numpy only."""
