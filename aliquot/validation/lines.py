"""The lines of findings: where in its file a field stands.

Documents are read without their lines, which would cost every pod of a dump; only a file that has
findings is walked once more, with all paths that are looked for at once. YAML is walked by the
parser's events, JSON by skipping values in C. A field that is not written has the line of what
should hold it.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from json import JSONDecoder
from typing import Any

import yaml

from aliquot.dialects.core.findings import Finding
from aliquot.errors import InputError

Path = tuple[str | int, ...]
"""The number of a document in its file, from 0, and the keys and indexes that lead to a value."""

_STEP = re.compile(r"\[([^\]]*)\]|([^.\[]+)")
_BLANKS = re.compile(r"\s*")


@dataclass(slots=True)
class _Wanted:
    """A value that is looked for, or that holds one."""

    line: int = 0
    inside: dict[str | int, "_Wanted"] = field(default_factory=dict)

    def add(self, path: Iterable[str | int]) -> None:
        node = self
        for step in path:
            node = node.inside.setdefault(step, _Wanted())

    def line_of(self, path: Iterable[str | int]) -> int:
        """The line of a value, or of the nearest value around it that stands in the file."""
        node, line = self, self.line
        for step in path:
            node = node.inside[step]
            if not node.line:
                break
            line = node.line
        return line


def with_lines(
    findings: Iterable[Finding], paths: Mapping[str, Path], text: Callable[[str], str]
) -> list[Finding]:
    """The findings with their lines. `paths` are those of documents, by place."""
    found = list(findings)
    wanted: dict[str, _Wanted] = {}
    for each in found:
        if each.place in paths:
            wanted.setdefault(each.file, _Wanted()).add(_path(each, paths))
    for file, root in wanted.items():
        try:
            _walk(text(file), root)
        except (InputError, yaml.YAMLError, ValueError, IndexError):
            continue  # it was read once, and has changed since
    return [
        replace(each, line=wanted[each.file].line_of(_path(each, paths)))
        if each.place in paths
        else each
        for each in found
    ]


def _path(finding: Finding, paths: Mapping[str, Path]) -> Path:
    return (*paths[finding.place], *_steps(finding.field))


def _steps(path: str) -> list[str | int]:
    """The steps of a field such as `spec.containers[0].resources.requests[cpu]`."""
    steps: list[str | int] = []
    for key, name in _STEP.findall(path):
        steps.append(int(key) if key.isascii() and key.isdigit() else key or name)
    return steps


def _walk(text: str, root: _Wanted) -> None:
    if text.lstrip()[:1] in ("{", "["):
        try:
            _walk_json(text, root)
            return
        except (ValueError, IndexError):
            pass
    _walk_yaml(text, root)


@dataclass(slots=True)
class _Frame:
    """A map or list that is open, as far as values in it are looked for."""

    node: _Wanted | None
    is_map: bool
    index: int = 0
    key: str | None = None

    def begin(self, event: Any) -> _Wanted | None:
        """The value that begins with an event; None for a key, and for what is not looked for."""
        if self.is_map and self.key is None:
            self.key = str(getattr(event, "value", ""))
            if self.node is not None and (found := self.node.inside.get(self._step(self.key))):
                found.line = event.start_mark.line + 1
            return None
        step = self._step(self.key) if self.key is not None else self.index
        self.key, self.index = None, self.index + 1
        found = self.node.inside.get(step) if self.node is not None else None
        if found is not None and not self.is_map:
            found.line = event.start_mark.line + 1
        return found

    def _step(self, key: str) -> str | int:
        """A key of digits alone stands as a number in paths."""
        return int(key) if key.isascii() and key.isdigit() else key


def _walk_yaml(text: str, root: _Wanted) -> None:
    frames = [_Frame(root, is_map=False)]
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        match event:
            case yaml.ScalarEvent() | yaml.AliasEvent():
                frames[-1].begin(event)
            case yaml.MappingStartEvent():
                frames.append(_Frame(frames[-1].begin(event), is_map=True))
            case yaml.SequenceStartEvent():
                frames.append(_Frame(frames[-1].begin(event), is_map=False))
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                frames.pop()


class _Json:
    """A text of JSON, which was read before and is valid."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._ends = [match.start() for match in re.finditer("\n", text)]
        self._skip = JSONDecoder().raw_decode

    def line(self, at: int) -> int:
        return bisect_right(self._ends, at) + 1

    def next(self, at: int) -> int:
        blanks = _BLANKS.match(self.text, at)
        return blanks.end() if blanks is not None else at

    def value(self, at: int, node: _Wanted | None) -> int:
        """Walk a value; returns where it ends. Nests as deep as the paths that are looked for."""
        if node is None or not node.inside:
            return self._skip(self.text, at)[1]
        if self.text[at] == "{":
            return self._map(at, node)
        return self._list(at, node) if self.text[at] == "[" else self._skip(self.text, at)[1]

    def _map(self, at: int, node: _Wanted) -> int:
        at = self.next(at + 1)
        while self.text[at] != "}":
            start = at
            key, at = self._skip(self.text, at)
            found = node.inside.get(int(key) if key.isascii() and key.isdigit() else key)
            if found is not None:
                found.line = self.line(start)
            at = self.value(self.next(self.next(at) + 1), found)
            at = self._after(at)
        return at + 1

    def _list(self, at: int, node: _Wanted) -> int:
        at, index = self.next(at + 1), 0
        while self.text[at] != "]":
            found = node.inside.get(index)
            if found is not None:
                found.line = self.line(at)
            at = self._after(self.value(at, found))
            index += 1
        return at + 1

    def _after(self, at: int) -> int:
        at = self.next(at)
        return self.next(at + 1) if self.text[at] == "," else at


def _walk_json(text: str, root: _Wanted) -> None:
    json = _Json(text)
    at, number = json.next(0), 0
    while at < len(text):
        found = root.inside.get(number)
        if found is not None:
            found.line = json.line(at)
        at = json.next(json.value(at, found))
        number += 1
