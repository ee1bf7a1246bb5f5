"""Lists and watches, for ever: every object of a kind, and every change to it."""
