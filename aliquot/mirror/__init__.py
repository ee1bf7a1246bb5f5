"""The objects of a cluster, real or embedded, mirrored into the engine; and what is written back."""
