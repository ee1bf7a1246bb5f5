"""Decoding of lists and watches into the fields that matter, in one pass.

Choosing fields is what makes it fast. What does not fit its shape is taken apart a second time to
see whose object it is, so that one bad object costs nothing but itself. A bookmark is an object
without content, which need not fit any shape: only its metadata is read.
"""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from aliquot.dialects.core.objects import Metadata, PlainWire, Wire
from aliquot.errors import ApiError
from aliquot.kube.api.refusals import Status
from aliquot.kube.watch.depth import tolerant
from aliquot.kube.watch.known_names import Name

Object = TypeVar("Object")
_START = b'{"type":"'
_INITIAL_END = "k8s.io/initial-events-end"


class Read(NamedTuple):
    """An object, and who it is; one that does not fit its shape is a problem instead."""

    name: Name
    version: str
    object: Any = None
    problem: str = ""


class Page(NamedTuple):
    """Some objects of a list."""

    objects: list[Read]
    version: str
    rest: str
    """The token with which to ask for the next ones; empty: these were the last."""


class _ListMetadata(Wire):
    resource_version: str | None = None
    rest: str | None = msgspec.field(default=None, name="continue")


class _List(msgspec.Struct, Generic[Object], gc=False):
    metadata: _ListMetadata
    items: list[Object] | None = None


class _Event(msgspec.Struct, Generic[Object], gc=False):
    object: Object


class _Type(msgspec.Struct, gc=False):
    type: str


_events_of_anything = tolerant(msgspec.json.Decoder(_Event[PlainWire]).decode)
_lists_of_anything = tolerant(msgspec.json.Decoder(_List[msgspec.Raw]).decode)
_errors = tolerant(msgspec.json.Decoder(_Event[Status]).decode)
_types = tolerant(msgspec.json.Decoder(_Type).decode)
_anything = msgspec.json.Decoder(PlainWire).decode


class Decoding(Generic[Object]):
    """Reads objects of one shape: a struct with metadata, or plain data."""

    def __init__(self, shape: type[Object]) -> None:
        self._one = msgspec.json.Decoder(shape).decode
        lists, events = _List[shape], _Event[shape]  # type: ignore[valid-type]
        self._list = tolerant(msgspec.json.Decoder(lists).decode)
        self._event = tolerant(msgspec.json.Decoder(events).decode)
        self._read: Callable[[Any], Read] = _plain if shape is dict else _typed

    def page(self, said: bytes) -> Page:
        """The objects of a response to a list; `msgspec.DecodeError` if it is none."""
        try:
            found: _List[Any] = self._list(said)
            read = [self._read(each) for each in found.items or ()]
        except msgspec.ValidationError:
            found = _lists_of_anything(said)
            read = [self._each(raw) for raw in found.items or ()]
        return Page(read, found.metadata.resource_version or "", found.metadata.rest or "")

    def event(self, line: bytes) -> Read:
        """The object of an event; `msgspec.DecodeError` if there is none in it."""
        try:
            return self._read(self._event(line).object)
        except msgspec.ValidationError as error:
            return _typed(_events_of_anything(line).object)._replace(
                object=None, problem=str(error)
            )

    def _each(self, raw: msgspec.Raw) -> Read:
        try:
            return self._read(self._one(raw))
        except msgspec.ValidationError as error:
            return _nameless(raw)._replace(object=None, problem=str(error))


def type_of(line: bytes) -> str:
    """What an event is: read first, since what its object looks like depends on it."""
    if line.startswith(_START):
        return line[len(_START) : line.find(b'"', len(_START))].decode(errors="replace")
    return _types(line).type


def whose(line: bytes) -> Read:
    """Who an event is about, and nothing else of it."""
    return _typed(_events_of_anything(line).object)


def bookmark(line: bytes) -> tuple[str, bool]:
    """How far a watch has come, and whether what was there at its beginning is complete now."""
    metadata = _events_of_anything(line).object.metadata
    said = (metadata.annotations or {}).get(_INITIAL_END)
    return metadata.resource_version or "", said == "true"


def error(line: bytes) -> ApiError:
    """The refusal that an event is."""
    status = _errors(line).object
    return status.error(status.code or 500)


def _typed(found: Any) -> Read:
    metadata: Metadata = found.metadata
    name = Name(metadata.namespace or "", metadata.name, metadata.uid or "")
    return Read(name, metadata.resource_version or "", found)


def _plain(found: dict[str, Any]) -> Read:
    metadata = found.get("metadata")
    if not isinstance(metadata, dict):
        raise msgspec.ValidationError("Object missing required field `metadata`")
    said = [metadata.get(key) or "" for key in ("namespace", "name", "uid", "resourceVersion")]
    if not all(isinstance(each, str) for each in said):
        raise msgspec.ValidationError("Expected `str` - at `$.metadata`")
    return Read(Name(*said[:3]), said[3], found)


def _nameless(raw: msgspec.Raw) -> Read:
    """Whose object it is, as far as can be read."""
    try:
        return _typed(_anything(raw))
    except msgspec.ValidationError:
        return Read(Name("", "", ""), "")
