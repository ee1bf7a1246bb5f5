"""List and watch: every object of a kind, and every change to it, for as long as it runs."""
