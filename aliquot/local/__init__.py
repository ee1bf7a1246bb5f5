"""`aliquot up`: API server, simulated nodes and control plane in one process."""
