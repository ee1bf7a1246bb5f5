"""Conversion: objects between the form in which they are stored and that of the kind requested.

Events are stored in the form of the core group; those of events.k8s.io have the same fields under
other names. The versions of a CustomResourceDefinition differ in nothing but their name.
"""

import msgspec

from aliquot.json import Body
from aliquot.server.http.refusals import invalid
from aliquot.server.kinds.kind import Kind
from aliquot.server.kinds.registry import Registry
from aliquot.server.rules.causes import required
from aliquot.server.storage.entry import Entry

_CORE_TO_NEW = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_NEW_TO_CORE = {new: old for old, new in _CORE_TO_NEW.items()}
_encode = msgspec.json.Encoder().encode


def to_storage(kind: Kind, body: Body) -> Body:
    """An object as it is stored, from the form in which it was sent."""
    if not kind.shared_storage:
        return body
    return {_NEW_TO_CORE.get(key, key): value for key, value in body.items()} | {"apiVersion": "v1"}


def check_new(kind: Kind, body: Body) -> None:
    """Refuse a new object without the fields that only this form requires."""
    if kind.shared_storage:
        needed = ("reportingComponent", "reportingInstance", "action", "eventTime")
        causes = [required(_CORE_TO_NEW.get(key, key)) for key in needed if not body.get(key)]
        if causes:
            raise invalid(kind, str((body.get("metadata") or {}).get("name", "")), causes)


def encode(kind: Kind, entry: Entry) -> bytes:
    """An object as JSON in the form of this kind."""
    if not _differs(kind):
        return entry.body
    found = entry.converted.get(kind.api_version)
    if found is None:
        found = entry.converted[kind.api_version] = _encode(read(kind, entry))
    return found


def read(kind: Kind, entry: Entry) -> Body:
    """A fresh copy of an object in the form of this kind."""
    return from_storage(kind, entry.read())


def storage_kind(kind: Kind, registry: Registry) -> Kind:
    """The kind in whose form the objects of this kind are stored."""
    return (registry.find("", "v1", kind.shared_storage) or kind) if kind.shared_storage else kind


def from_storage(kind: Kind, body: Body) -> Body:
    """An object in the form of this kind, from the form in which it is stored."""
    if not _differs(kind):
        return body
    if kind.shared_storage:
        body = {_CORE_TO_NEW.get(key, key): value for key, value in body.items()}
    return {**body, "apiVersion": kind.api_version, "kind": kind.name}


def _differs(kind: Kind) -> bool:
    several = kind.definition is not None and len(kind.definition["spec"]["versions"]) > 1
    return bool(kind.shared_storage) or several
