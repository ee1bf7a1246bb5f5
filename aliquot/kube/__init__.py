"""The control plane on a cluster: reads its objects, lets the engine decide, writes what follows."""
