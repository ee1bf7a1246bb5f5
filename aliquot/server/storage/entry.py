"""An entry: one object at one resource version, as the JSON that is sent to clients.

The bytes are the object and never change: a list joins them, a watch sends them, and no reader can
change a stored object. The fields that selectors compare are decoded once and kept beside them.
"""

from dataclasses import dataclass, field

import msgspec

from aliquot.json import Body

Key = tuple[str, str]
"""Namespace and name; the namespace of a cluster-scoped object is empty."""

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode

_SELECTED_FIELDS: dict[str, dict[str, tuple[str, ...]]] = {
    "pods": {
        "spec": (
            "nodeName",
            "restartPolicy",
            "schedulerName",
            "serviceAccountName",
            "hostNetwork",
        ),
        "status": ("phase", "podIP", "podIPs", "nominatedNodeName"),
    },
    "nodes": {"spec": ("unschedulable",)},
    "namespaces": {"status": ("phase",)},
    "replicasets.apps": {"status": ("replicas",)},
    "replicationcontrollers": {"status": ("replicas",)},
    "services": {"spec": ("clusterIP", "type")},
    "jobs.batch": {"status": ("succeeded",)},
}
"""By storage and part of the object, the fields that field selectors may name."""
_SELECTED_WHOLE: dict[str, tuple[str, ...]] = {
    "events": (
        "involvedObject",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "secrets": ("type",),
}
"""By storage, the top-level fields that field selectors may name."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An object at a version."""

    namespace: str
    name: str
    uid: str
    version: int
    body: bytes
    selectable: Body
    """The fields that label and field selectors compare."""
    owners: tuple[str, ...] = ()
    """The uids of its owners."""
    deleting: bool = False
    converted: dict[str, bytes] = field(default_factory=dict, compare=False)
    """By apiVersion, the object in the form of another kind; made on first use."""

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return (self.namespace, self.name)

    @property
    def labels(self) -> dict[str, str]:
        """Its labels."""
        found: dict[str, str] = self.selectable["metadata"].get("labels") or {}
        return found

    def read(self) -> Body:
        """A fresh copy of the object."""
        body: Body = _decode(self.body)
        return body


def entry(storage: str, body: Body, version: int) -> Entry:
    """An object at this version, which is written into it."""
    body["metadata"]["resourceVersion"] = str(version)
    return _entry(storage, body, version, _encode(_ordered(body)))


def _ordered(body: Body) -> Body:
    """The object with apiVersion and kind first: lists of built-in kinds cut them off."""
    return {"apiVersion": body["apiVersion"], "kind": body["kind"], **body}


def dry_run_entry(storage: str, body: Body) -> Entry:
    """An object as a dry run answers it; a new one has no version."""
    return _entry(storage, body, int(body["metadata"].get("resourceVersion", 0)), _encode(body))


def restored_entry(storage: str, encoded: bytes) -> Entry:
    """An object as the log has it."""
    body: Body = _decode(encoded)
    return _entry(storage, body, int(body["metadata"]["resourceVersion"]), encoded)


def _entry(storage: str, body: Body, version: int, encoded: bytes) -> Entry:
    metadata = body["metadata"]
    selectable: Body = {
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata.get("namespace", ""),
            "labels": metadata.get("labels") or {},
        }
    }
    for part, names in _SELECTED_FIELDS.get(storage, {}).items():
        written = body.get(part) or {}
        selectable[part] = {name: written[name] for name in names if name in written}
    for part in _SELECTED_WHOLE.get(storage, ()):
        if part in body:
            selectable[part] = body[part]
    return Entry(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata["uid"],
        version=version,
        body=encoded,
        selectable=selectable,
        owners=tuple(each["uid"] for each in metadata.get("ownerReferences") or ()),
        deleting="deletionTimestamp" in metadata,
    )
