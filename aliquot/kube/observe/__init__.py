"""Observability of the control plane: probes, metrics, logs, and the audit of the ledger."""
