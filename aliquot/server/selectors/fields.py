"""The fields that field selectors may name, by kind: those of Kubernetes.

Every kind has metadata.name and metadata.namespace. Some have more, for clients that watch by
them: kubelets watch the pods of their node, kubectl the events of an object.
"""

from collections.abc import Callable, Mapping
from typing import Any

from aliquot.json import Body

Reader = Callable[[Body], str]
"""Reads a field of an object as text."""


def readers(kind: str) -> Mapping[str, Reader]:
    """By field, its reader, for a kind by its unique name."""
    return _READERS.get(kind, _METADATA)


def not_supported(kind: str, field: str) -> str:
    """Kubernetes' message for a field that is not supported."""
    if kind == "Job":
        return f'field label "{field}" not supported for Job'
    if kind in _READERS:
        return f"field label not supported: {field}"
    return f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def _at(path: str, otherwise: str = "") -> Reader:
    """The reader of a field; an absent one has its zero value, as in Go."""
    words = path.split(".")

    def read(obj: Body) -> str:
        found: Any = obj
        for word in words:
            found = found.get(word) if isinstance(found, dict) else None
        if isinstance(found, bool):
            return "true" if found else "false"
        return otherwise if found is None else str(found)

    return read


def _first(*paths: str) -> Reader:
    """The reader of the first of several fields that is not empty."""
    each = [_at(path) for path in paths]
    return lambda obj: next((text for read in each if (text := read(obj))), "")


def _pod_addresses(obj: Body) -> str:
    listed = (obj.get("status") or {}).get("podIPs") or []
    return ",".join(str(each.get("ip", "")) for each in listed)


def _involved(*fields: str) -> dict[str, Reader]:
    """The object of an event: involvedObject in the core group, regarding in events.k8s.io."""
    names = ("involvedObject", "regarding")
    return {
        f"{name}.{field}": _first(*(f"{each}.{field}" for each in names))
        for name in names
        for field in fields
    }


_NAME = {"metadata.name": _at("metadata.name")}
_METADATA: dict[str, Reader] = {**_NAME, "metadata.namespace": _at("metadata.namespace")}
_READERS: dict[str, dict[str, Reader]] = {
    "Event": {
        **_METADATA,
        **_involved(
            "kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"
        ),
        "reason": _at("reason"),
        "type": _at("type"),
        "source": _first("source.component", "reportingComponent"),
        "reportingComponent": _first("reportingComponent", "reportingController"),
        "reportingController": _first("reportingController", "reportingComponent"),
    },
    "Job": {**_METADATA, "status.successful": _at("status.succeeded", "0")},
    "Namespace": {**_NAME, "status.phase": _at("status.phase")},
    "Node": {**_NAME, "spec.unschedulable": _at("spec.unschedulable", "false")},
    "Pod": {
        **_METADATA,
        "spec.host": _at("spec.nodeName"),
        "spec.hostNetwork": _at("spec.hostNetwork", "false"),
        "spec.nodeName": _at("spec.nodeName"),
        "spec.restartPolicy": _at("spec.restartPolicy"),
        "spec.schedulerName": _at("spec.schedulerName"),
        "spec.serviceAccountName": _at("spec.serviceAccountName"),
        "status.nominatedNodeName": _at("status.nominatedNodeName"),
        "status.phase": _at("status.phase"),
        "status.podIP": _at("status.podIP"),
        "status.podIPs": _pod_addresses,
    },
    "ReplicaSet": {**_METADATA, "status.replicas": _at("status.replicas", "0")},
    "ReplicationController": {**_METADATA, "status.replicas": _at("status.replicas", "0")},
    "Secret": {**_METADATA, "type": _at("type")},
    "Service": {
        **_METADATA,
        "spec.clusterIP": _at("spec.clusterIP"),
        "spec.type": _at("spec.type"),
    },
}
