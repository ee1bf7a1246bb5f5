"""The shadow: decides beside the present scheduler of a cluster, writes nothing, and compares."""
