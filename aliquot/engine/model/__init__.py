"""Values: the objects of a cluster, events about them, decisions with their reasons, knobs."""
