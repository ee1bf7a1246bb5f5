"""The representation of objects in a response: whole, as a Table, or metadata only.

The client chooses it in the header `Accept`.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Literal

import msgspec

from aliquot.errors import RefusalError
from aliquot.json import Body
from aliquot.server.kinds import conversion
from aliquot.server.kinds.kind import Kind
from aliquot.server.rendering.tables import table
from aliquot.server.storage.entry import Entry

Representation = Literal["whole", "table", "metadata"]

_REPRESENTATIONS: dict[str, Representation] = {
    "": "whole",
    "Table": "table",
    "PartialObjectMetadata": "metadata",
    "PartialObjectMetadataList": "metadata",
}
_FORMS = ("application/json", "application/yaml", "*/*", "application/*")
_encode = msgspec.json.Encoder().encode


def negotiate(accept: str) -> Representation:
    """The first accepted representation that is supported."""
    for part in accept.split(",") if accept else ["*/*"]:
        form, *parameters = (word.strip() for word in part.split(";"))
        given = dict(word.partition("=")[::2] for word in parameters)
        found = _REPRESENTATIONS.get(given.get("as", ""))
        known = given.get("g", "meta.k8s.io") == "meta.k8s.io" and given.get("v", "v1") == "v1"
        if form in _FORMS and found is not None and known:
            return found
    message = "only the following media types are accepted: application/json"
    raise RefusalError(HTTPStatus.NOT_ACCEPTABLE, "NotAcceptable", message)


def one(
    kind: Kind, entry: Entry, representation: Representation, include: str = "Metadata"
) -> bytes:
    """One object as JSON; `include`: how much of it the row of a Table carries."""
    if representation == "whole":
        return conversion.encode(kind, entry)
    if representation == "metadata":
        return _encode(_metadata(kind, entry))
    shown = _included(_table(kind, [entry]), kind, [entry], include)
    return _encode(_with_version(shown, str(entry.version)))


def many(
    kind: Kind,
    entries: Sequence[Entry],
    representation: Representation,
    metadata: Body,
    include: str = "Metadata",
) -> bytes:
    """A list of objects as JSON."""
    if representation == "table":
        shown = _included(_table(kind, entries), kind, entries, include)
        return _encode({**shown, "metadata": metadata})
    if representation == "metadata":
        items = b",".join(_encode(_metadata(kind, each)) for each in entries)
        return _list("meta.k8s.io/v1", "PartialObjectMetadataList", metadata, items)
    if kind.definition is None:
        start = len(_encode({"apiVersion": kind.api_version, "kind": kind.name}))
        items = b",".join([b"{" + conversion.encode(kind, each)[start:] for each in entries])
    else:
        items = b",".join([conversion.encode(kind, each) for each in entries])
    return _list(kind.api_version, kind.list_name, metadata, items)


def _list(api_version: str, name: str, metadata: Body, items: bytes) -> bytes:
    head = _encode({"kind": name, "apiVersion": api_version, "metadata": metadata})
    return b'%b,"items":[%b]}\n' % (head[:-1], items)


def _metadata(kind: Kind, entry: Entry) -> Body:
    about = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return {**about, "metadata": conversion.read(kind, entry)["metadata"]}


def _table(kind: Kind, entries: Sequence[Entry]) -> Body:
    objects = [conversion.read(kind, each) for each in entries]
    return table(kind.unique_name, objects, datetime.now(UTC), kind.columns)


def _included(body: Body, kind: Kind, entries: Sequence[Entry], include: str) -> Body:
    """A Table whose rows carry no object, its metadata, or all of it."""
    for row, entry in zip(body["rows"], entries, strict=True):
        if include == "None":
            row.pop("object", None)
        elif include == "Object":
            row["object"] = conversion.read(kind, entry)
    return body


def _with_version(body: Body, version: str) -> Body:
    return {**body, "metadata": {"resourceVersion": version}}
