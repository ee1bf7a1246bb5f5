"""Forms: an object as one of its kinds shows it, where it is kept as another one.

Events are kept as those of the core group; those of events.k8s.io are the same under other names.
The versions of a CustomResourceDefinition differ in nothing but their name.
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


def kept(kind: Kind, body: Body) -> Body:
    """An object as it is kept, from the form in which it was sent."""
    if not kind.storage:
        return body
    return {_NEW_TO_CORE.get(key, key): value for key, value in body.items()} | {"apiVersion": "v1"}


def check_new(kind: Kind, body: Body) -> None:
    """What a new object in this form must say, and need not in the form in which it is kept."""
    if kind.storage:
        needed = ("reportingComponent", "reportingInstance", "action", "eventTime")
        causes = [required(_CORE_TO_NEW.get(key, key)) for key in needed if not body.get(key)]
        if causes:
            raise invalid(kind, str((body.get("metadata") or {}).get("name", "")), causes)


def shown(kind: Kind, entry: Entry) -> bytes:
    """An object as this kind shows it."""
    if not _differs(kind):
        return entry.body
    found = entry.forms.get(kind.api_version)
    if found is None:
        found = entry.forms[kind.api_version] = _encode(read(kind, entry))
    return found


def read(kind: Kind, entry: Entry) -> Body:
    """The same, to do with as one likes."""
    return turned(kind, entry.read())


def keeper(kind: Kind, registry: Registry) -> Kind:
    """The kind whose form is kept."""
    return (registry.find("", "v1", kind.storage) or kind) if kind.storage else kind


def turned(kind: Kind, body: Body) -> Body:
    """An object from the form in which it is kept to the one that this kind has."""
    if not _differs(kind):
        return body
    if kind.storage:
        body = {_CORE_TO_NEW.get(key, key): value for key, value in body.items()}
    return {**body, "apiVersion": kind.api_version, "kind": kind.name}


def _differs(kind: Kind) -> bool:
    several = kind.definition is not None and len(kind.definition["spec"]["versions"]) > 1
    return bool(kind.storage) or several
