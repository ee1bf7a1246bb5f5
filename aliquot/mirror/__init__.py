"""The objects of a cluster, real or embedded, mirrored into the engine; what is written back."""
