"""Pods of workloads: counted as active, ordered for deletion. Pure."""

from aliquot.json import Body
from aliquot.server.subresources.budgets import finished, phase, ready


def active(pod: Body) -> bool:
    """Has a pod neither ended nor been deleted?"""
    return not finished(pod) and "deletionTimestamp" not in pod["metadata"]


def deletion_order(pod: Body) -> tuple[bool, bool, bool, str]:
    """Deleted first: pods that are not bound, not running, not ready, newer."""
    age = pod["metadata"]["creationTimestamp"]
    newer = "".join(chr(0x10FFFF - ord(letter)) for letter in age)
    spec = pod.get("spec") or {}
    return (bool(spec.get("nodeName")), phase(pod) == "Running", ready(pod), newer)
