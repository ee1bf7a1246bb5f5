"""Which kinds are served: built in, or defined by users."""
