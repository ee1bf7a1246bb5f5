"""Aliquot beside the real kube-scheduler, on one API server."""
