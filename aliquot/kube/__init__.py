"""The control plane on a cluster: reads objects, lets the engine decide, writes what follows."""
