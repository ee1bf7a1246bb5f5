"""Text to documents: YAML or JSON, several in one file, lists unpacked.

Every document keeps its place (file and number), so that a finding can name it. YAML is built here
from the parser's events and not by the library's loader, so that depth, size, merge keys and
duplicate keys are bounded for any file: plain data only, timestamps stay text, and an alias that
unfolds to too many values is refused.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from aliquot.dialects.core.findings import Finding, refused
from aliquot.errors import InputError
from aliquot.json import DEEPEST, Body, too_deep

_MOST_VALUES = 5_000_000
"""Aliases can unfold a short text into any number of values. A cluster of 50,000 pods has about
fifty values a pod, half of this; beyond, memory would be the limit."""
_MOST_DIGITS = 400
"""More digits than the largest float has (309); Python refuses to convert more than 4,300."""
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]{1,4})?")
_WORDS = {
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_MERGE = "<<"
_BLANKS = re.compile(r"\s+")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class Document:
    """One object as it was written, and its place."""

    place: str
    body: Body
    source: str = ""
    """The file it was read from, if it was read from one."""
    path: tuple[str | int, ...] = ()
    """Where in the file it stands: its number, from 0, then keys and indexes of what holds it."""


def parse(text: str, source: str) -> Iterator[Document]:
    """All documents of a text; the first that is no object with a kind is refused."""
    for each in scan(text, source):
        if isinstance(each, Finding):
            raise each.error()
        yield each


def scan(text: str, source: str) -> Iterator[Document | Finding]:
    """All documents of a text, with `kind: List` unpacked; empty ones are left out.

    A document that is no object with a kind is a finding; text that is not YAML or JSON is refused.
    """
    bodies = values(text, source)
    for number, body in enumerate(bodies, start=1):
        place = source if len(bodies) == 1 else f"{source}, document {number}"
        if body is not None:
            yield from unpack(body, place, source, (number - 1,))


def values(text: str, source: str) -> list[Any]:
    """All documents of a text as plain data, of any type; None for an empty one."""
    bodies = _json(text, source)
    return _yaml(text, source) if bodies is None else bodies


def unpack(
    body: object, place: str, source: str = "", path: tuple[str | int, ...] = ()
) -> Iterator[Document | Finding]:
    """A body as a document, or as several if it is a `kind: List`."""
    try:
        items = _items(body, place)
    except InputError as error:
        yield replace(refused(error, place, source), path=path)
        return
    if items is None:
        assert isinstance(body, dict)
        yield Document(place, body, source, path)
        return
    for index, item in enumerate(items):
        inside = (*path, "items", index)
        yield from unpack(item, f"{place}, items[{index}]", source, inside)


def _items(body: object, place: str) -> list[Any] | None:
    """The objects of a `kind: List`; None for an object by itself."""
    if not isinstance(body, dict):
        raise InputError(place, "", f"expected an object with kind and metadata, got {_name(body)}")
    kind = body.get("kind")
    if not isinstance(kind, str) or not kind:
        raise InputError(place, "kind", "is missing" if kind is None else "must be a word")
    if not kind.endswith("List") or "items" not in body:
        return None
    items = body["items"] or []
    if not isinstance(items, list):
        raise InputError(place, "items", f"expected a list, got {_name(items)}")
    of_kind = {} if kind == "List" else {"kind": kind[:-4], "apiVersion": body.get("apiVersion")}
    return [{**of_kind, **item} if isinstance(item, dict) else item for item in items]


def _json(text: str, source: str) -> list[Any] | None:
    """The values of a text that is JSON throughout; None if it is not."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    decoder = json.JSONDecoder(object_pairs_hook=lambda pairs: _unique(pairs, source))
    values, at = [], _next(text, 0)
    try:
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            values.append(value)
            at = _next(text, at)
    except (ValueError, RecursionError):
        return None
    if any(map(too_deep, values)):
        raise InputError(source, "", f"not JSON: nested more than {DEEPEST} deep")
    _refuse_half_characters(text, values, source)
    return values


def _next(text: str, at: int) -> int:
    """The position of the next value, past blanks, without copying the rest of a long text."""
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks is not None else at


def _refuse_half_characters(text: str, values: list[Any], source: str) -> None:
    """Refuse a lone surrogate: JSON can escape half of a character, which UTF-8 cannot encode."""
    if _SURROGATE.search(text):
        try:
            json.dumps(values, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = f"\\u{ord(error.object[error.start]):04x}"
            raise InputError(source, "", f"not text: {half} is half of a character") from None


def _unique(pairs: list[tuple[str, Any]], source: str) -> Body:
    body = dict(pairs)
    if len(body) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(source, "", f"key {twice!r} stands twice in one object")
    return body


def _yaml(text: str, source: str) -> list[Any]:
    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}" if mark is not None else ""
        raise InputError(source, line, f"not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(source, "", f"not YAML: {' '.join(str(error).split())}") from None
    return builder.documents


@dataclass(slots=True)
class _Open:
    """A map or list that is being filled, and its anchor."""

    value: Any
    anchor: str | None
    size: int = 1
    key: Any = None
    has_key: bool = False
    merged: list[Any] = field(default_factory=list)


class _Builder:
    """Builds plain data from YAML events."""

    def __init__(self) -> None:
        self.documents: list[Any] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}

    def take(self, event: yaml.Event) -> None:
        """Take the next event."""
        match event:
            case yaml.DocumentStartEvent():
                self._anchors.clear()
                self.documents.append(None)
            case yaml.ScalarEvent(anchor=anchor):
                self._put(_scalar(event), 1, anchor, event)
            case yaml.AliasEvent(anchor=anchor):
                value, size = self._anchors.get(str(anchor)) or _refuse(event, "no such anchor")
                self._put(value, size, None, event)
            case yaml.MappingStartEvent(anchor=anchor) | yaml.SequenceStartEvent(anchor=anchor):
                if len(self._open) >= DEEPEST:
                    _refuse(event, f"nested more than {DEEPEST} deep")
                empty: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
                self._open.append(_Open(empty, anchor))
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                done = self._open.pop()
                for other in done.merged:
                    done.value.update({k: v for k, v in other.items() if k not in done.value})
                self._put(done.value, done.size, done.anchor, event)

    def _put(self, value: Any, size: int, anchor: str | None, event: yaml.Event) -> None:
        if anchor is not None:
            self._anchors[anchor] = (value, size)
        if not self._open:
            self.documents[-1] = value
            return
        top = self._open[-1]
        top.size += size
        if top.size > _MOST_VALUES:
            _refuse(event, f"unfolds to more than {_MOST_VALUES} values")
        if isinstance(top.value, list):
            top.value.append(value)
        elif not top.has_key:
            if isinstance(value, dict | list):
                _refuse(event, "a key must be a word")
            top.key, top.has_key = value, True
        else:
            top.has_key = False
            self._set(top, value, event)

    def _set(self, top: _Open, value: Any, event: yaml.Event) -> None:
        if top.key == _MERGE:
            sources = value if isinstance(value, list) else [value]
            if not all(isinstance(source, dict) for source in sources):
                _refuse(event, "<< merges maps only")
            top.merged.extend(sources)
        elif top.key in top.value:
            _refuse(event, f"key {top.key!r} stands twice in one object")
        else:
            top.value[top.key] = value


def _scalar(event: yaml.ScalarEvent) -> Any:
    """The value of a scalar: text if quoted or tagged as such; else by YAML 1.1's plain forms."""
    text: str = event.value
    tag = (event.tag or "").removeprefix("tag:yaml.org,2002:")
    if tag in ("str", "!") or (not tag and not event.implicit[0]):
        return text
    if tag not in ("", "int", "float", "bool", "null"):
        _refuse(event, f"tag {event.tag} is not plain data")
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > _MOST_DIGITS:
        return text
    if _INTEGER.fullmatch(text):
        return int(text.replace("_", ""))
    if _FLOAT.fullmatch(text):
        return _number(text)
    return text


def _number(text: str) -> Any:
    """A float, or the text where a float would not be exact: quantities are parsed from text."""
    value = float(text.replace("_", ""))
    return value if repr(value) == text else text


def _refuse(event: Any, problem: str) -> Any:
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


def _name(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "text", type(None): "nothing"}
    return names.get(type(value), type(value).__name__)
