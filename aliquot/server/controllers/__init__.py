"""The controllers of the embedded server: garbage collection, status, volumes, kubelets."""
