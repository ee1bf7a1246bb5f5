"""How the control plane is doing: probes, metrics, logs, and the check of the books."""
