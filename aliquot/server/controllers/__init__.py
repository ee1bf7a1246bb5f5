"""The controllers of the embedded server: workloads, garbage collection, status, kubelets."""
