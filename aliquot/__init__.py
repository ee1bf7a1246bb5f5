"""Elastic quotas and fair sharing for shared GPU clusters."""

__version__ = "0.1.0"
