"""Decoding of lists and watch events into structs with only the fields that are used.

Leaving fields out is what makes it fast. An object that does not fit its struct is decoded a second
time for its name alone, so that one bad object never hides the others. A bookmark is an object
without content, which fits no struct: only its metadata is read.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from aliquot.dialects.core.objects import Metadata, PlainWire, Wire
from aliquot.errors import ApiError
from aliquot.kube.api.refusals import Status
from aliquot.kube.watch.depth import tolerant
from aliquot.kube.watch.known_names import Name

Object = TypeVar("Object")
_START = b'{"type":"'
"""How API servers begin an event, so that its type can be read without decoding the object."""
_INITIAL_END = "k8s.io/initial-events-end"


class Read(NamedTuple):
    """A decoded object with its name and resourceVersion; `problem` if it does not fit."""

    name: Name
    version: str
    object: Any = None
    problem: str = ""


class Page(NamedTuple):
    """One page of a list."""

    objects: list[Read]
    version: str
    rest: str
    """The `continue` token of the next page; empty: this was the last."""


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
_check = tolerant(msgspec.json.Decoder().decode)
_types = tolerant(msgspec.json.Decoder(_Type).decode)
_anything = msgspec.json.Decoder(PlainWire).decode


class ObjectDecoder(Generic[Object]):
    """Decodes the objects of one kind into `shape`: a struct with metadata, or `dict`."""

    def __init__(self, shape: type[Object]) -> None:
        self._one = msgspec.json.Decoder(shape).decode
        lists, events = _List[shape], _Event[shape]  # type: ignore[valid-type]
        self._list = tolerant(msgspec.json.Decoder(lists).decode)
        self._event = tolerant(msgspec.json.Decoder(events).decode)
        self._read: Callable[[Any], Read] = _plain if shape is dict else _typed

    def page(self, answer: bytes) -> Page:
        """The objects of an answer to a list; `msgspec.DecodeError` if it is none."""
        try:
            found: _List[Any] = self._list(answer)
            read = [self._read(each) for each in found.items or ()]
        except msgspec.ValidationError:
            found = _lists_of_anything(answer)
            read = [self._one_of(raw) for raw in found.items or ()]
        return Page(read, found.metadata.resource_version or "", found.metadata.rest or "")

    def event(self, line: bytes) -> Read:
        """The object of a watch event; `msgspec.DecodeError` if it has none."""
        try:
            return self._read(self._event(line).object)
        except msgspec.ValidationError as error:
            return _typed(_events_of_anything(line).object)._replace(
                object=None, problem=str(error)
            )

    def _one_of(self, raw: msgspec.Raw) -> Read:
        try:
            return self._read(self._one(raw))
        except msgspec.ValidationError as error:
            return _name_only(raw)._replace(object=None, problem=str(error))


def type_of(line: bytes) -> str:
    """The type of a watch event: read first, since the object's struct depends on it."""
    if line.startswith(_START):
        return line[len(_START) : line.find(b'"', len(_START))].decode(errors="replace")
    return _types(line).type


def check(line: bytes) -> None:
    """Raise `msgspec.DecodeError` if a line is not even JSON."""
    _check(line)


def name_in(line: bytes) -> Read:
    """The name and resourceVersion of an event's object; the object itself may be anything."""
    return _typed(_events_of_anything(line).object)


def bookmark(line: bytes) -> tuple[str, bool]:
    """The resourceVersion of a bookmark, and whether it ends the initial events."""
    metadata = _events_of_anything(line).object.metadata
    ends = (metadata.annotations or {}).get(_INITIAL_END)
    return metadata.resource_version or "", ends == "true"


def error(line: bytes) -> ApiError:
    """The `ApiError` of an ERROR event."""
    status = _errors(line).object
    return status.error(status.code or HTTPStatus.INTERNAL_SERVER_ERROR)


def _typed(found: Any) -> Read:
    metadata: Metadata = found.metadata
    name = Name(metadata.namespace or "", metadata.name, metadata.uid or "")
    return Read(name, metadata.resource_version or "", found)


def _plain(found: dict[str, Any]) -> Read:
    metadata = found.get("metadata")
    if not isinstance(metadata, dict):
        raise msgspec.ValidationError("Object missing required field `metadata`")
    fields = [metadata.get(key) or "" for key in ("namespace", "name", "uid", "resourceVersion")]
    if not all(isinstance(each, str) for each in fields):
        raise msgspec.ValidationError("Expected `str` - at `$.metadata`")
    return Read(Name(*fields[:3]), fields[3], found)


def _name_only(raw: msgspec.Raw) -> Read:
    """The name of an object that fits no struct; empty if not even that can be read."""
    try:
        return _typed(_anything(raw))
    except msgspec.ValidationError:
        return Read(Name("", "", ""), "")
