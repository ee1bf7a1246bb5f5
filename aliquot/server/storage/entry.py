"""An entry: one object as it is kept, at one version.

The bytes are the truth, and never change: a list joins them, a watch sends them, and nobody can
change an object by holding on to it. What selectors ask for is read once and kept beside them.
"""

from dataclasses import dataclass, field

import msgspec

from aliquot.json import Body

Key = tuple[str, str]
"""Namespace and name; the namespace of what has none is empty."""

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode

_SELECTED: dict[str, dict[str, tuple[str, ...]]] = {
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
    "jobs.batch": {"status": ("succeeded",)},
}
_WHOLE: dict[str, tuple[str, ...]] = {
    "events": (
        "involvedObject",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "secrets": ("type",),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """An object at a version."""

    namespace: str
    name: str
    uid: str
    version: int
    body: bytes
    head: Body
    """The parts that selectors look at."""
    owners: tuple[str, ...] = ()
    """The uids of its owners."""
    deleting: bool = False
    forms: dict[str, bytes] = field(default_factory=dict, compare=False)
    """Other forms of the same, made when first asked for."""

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return (self.namespace, self.name)

    @property
    def labels(self) -> dict[str, str]:
        """Its labels."""
        found: dict[str, str] = self.head["metadata"].get("labels") or {}
        return found

    def read(self) -> Body:
        """The object, to do with as one likes."""
        body: Body = _decode(self.body)
        return body


def entry(storage: str, body: Body, version: int) -> Entry:
    """Keep an object at this version, which is written into it."""
    body["metadata"]["resourceVersion"] = str(version)
    return _made(storage, body, version, _encode(_ordered(body)))


def _ordered(body: Body) -> Body:
    """The object with its kind first, where lists leave it out."""
    return {"apiVersion": body["apiVersion"], "kind": body["kind"], **body}


def tried(storage: str, body: Body) -> Entry:
    """An object as it would be kept; one that is new has no version."""
    return _made(storage, body, int(body["metadata"].get("resourceVersion", 0)), _encode(body))


def restored(storage: str, encoded: bytes) -> Entry:
    """An object that was kept before."""
    body: Body = _decode(encoded)
    return _made(storage, body, int(body["metadata"]["resourceVersion"]), encoded)


def _made(storage: str, body: Body, version: int, encoded: bytes) -> Entry:
    metadata = body["metadata"]
    head: Body = {
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata.get("namespace", ""),
            "labels": metadata.get("labels") or {},
        }
    }
    for part, names in _SELECTED.get(storage, {}).items():
        written = body.get(part) or {}
        head[part] = {name: written[name] for name in names if name in written}
    for part in _WHOLE.get(storage, ()):
        if part in body:
            head[part] = body[part]
    return Entry(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata["uid"],
        version=version,
        body=encoded,
        head=head,
        owners=tuple(each["uid"] for each in metadata.get("ownerReferences") or ()),
        deleting="deletionTimestamp" in metadata,
    )
