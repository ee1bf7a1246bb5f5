"""Which kinds are served: the built-in ones, and those of CustomResourceDefinitions."""
