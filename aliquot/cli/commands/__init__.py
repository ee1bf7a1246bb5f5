"""One module a command: its options, the library call, and what is printed."""
