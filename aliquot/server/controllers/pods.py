"""Pods of workloads: made from a template, counted as active, ordered for deletion. Pure."""

import copy

from aliquot.json import Body
from aliquot.server.subresources.budgets import phase, ready


def from_template(owner: Body, template: Body, labels: dict[str, str] | None = None) -> Body:
    """A new pod of an owner."""
    written = template.get("metadata") or {}
    metadata: Body = {
        key: copy.deepcopy(written[key])
        for key in ("annotations", "finalizers", "labels")
        if written.get(key)
    }
    if labels:
        metadata["labels"] = {**metadata.get("labels", {}), **labels}
    metadata["generateName"] = f"{owner['metadata']['name']}-"
    metadata["ownerReferences"] = [reference(owner)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": copy.deepcopy(template.get("spec") or {}),
    }


def reference(owner: Body) -> Body:
    """The owner reference to the controller of an object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def active(pod: Body) -> bool:
    """Has a pod neither ended nor been deleted?"""
    return phase(pod) not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]


def deletion_order(pod: Body) -> tuple[bool, bool, bool, str]:
    """Deleted first: pods that are not bound, not running, not ready, newer."""
    age = pod["metadata"]["creationTimestamp"]
    newer = "".join(chr(0x10FFFF - ord(letter)) for letter in age)
    spec = pod.get("spec") or {}
    return (bool(spec.get("nodeName")), phase(pod) == "Running", ready(pod), newer)
