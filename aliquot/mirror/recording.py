"""Recordings: what an engine was told and what it decided, line by line, to be replayed.

A line is JSON: the engine's policy and knobs, an event, a cycle with its time, or the decisions of
the cycle before. Values are written with the name of their type and only the fields that are not
the default, and read back by the types of the engine alone: a recording is data, never code. A bug
report is such a file.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

import msgspec

from aliquot import engine as engine_values
from aliquot.engine import Decision, Engine, Event, Knobs, Pod, PodSet
from aliquot.errors import AliquotError, InputError
from aliquot.json import DEEPEST, Body, too_deep
from aliquot.mirror.decision_entries import Entry, entries

_TYPE = ""
"""The key with the name of a value's type."""
_OF = "of"
_TYPES: Mapping[str, Any] = {
    name: found
    for name, found in vars(engine_values).items()
    if isinstance(found, type)
    and (is_dataclass(found) or issubclass(found, Enum) or hasattr(found, "_fields"))
}
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Body).decode
Write = Callable[[bytes], None]
"""Takes a line, without its end."""


class RecordingEngine(Engine):
    """An engine that writes down what it is told and what it decides."""

    def __init__(self, policy: str, knobs: Knobs | None, write: Write) -> None:
        super().__init__(policy, knobs)
        self._write = write
        self._line(engine={"policy": policy, "knobs": _plain(knobs or Knobs())})

    def apply(self, event: Event) -> None:
        """Apply an event; one that is refused changes nothing, and is not written."""
        super().apply(event)
        self._line(event=_plain(event))

    def load(self, pods: Sequence[Pod]) -> None:
        """Book many pods; each is written as an event of its own, which comes to the same."""
        super().load(pods)
        for pod in pods:
            self._line(event=_plain(PodSet(pod)))

    def cycle(self, now: int = 0, bounded: bool = False) -> list[Decision]:
        """Run a cycle; that it was begun is written first, in case that it fails."""
        self._line(cycle=now, bounded=bounded)
        found = super().cycle(now, bounded)
        self._line(decisions=[msgspec.to_builtins(each) for each in entries(self, found)])
        return found

    def _line(self, **content: Any) -> None:
        self._write(_encode(content))


@dataclass(frozen=True, slots=True)
class Difference:
    """A cycle whose decisions are others than those recorded."""

    line: int
    now: int
    recorded: list[Body]
    replayed: list[Body]


@dataclass(slots=True)
class Replay:
    """How far a recording was replayed, and where it differed first."""

    events: int = 0
    cycles: int = 0
    decisions: int = 0
    difference: Difference | None = None


def replay(lines: Iterable[bytes], place: str, until_difference: bool = True) -> Replay:
    """Feed the recorded events to an engine, and compare its decisions with those recorded."""
    found, engine, last = Replay(), None, list[Entry]()
    now = 0
    for number, line in enumerate(lines, start=1):
        where = f"{place}, line {number}"
        body = _line(line, where)
        if "engine" in body:
            engine = _engine(body["engine"], where)
        elif engine is None:
            raise InputError(where, "", "comes before a line with the engine: not a recording")
        elif "event" in body:
            _apply(engine, body["event"], where)
            found.events += 1
        elif "cycle" in body:
            now = _whole(body["cycle"], where)
            last = list(entries(engine, engine.cycle(now, bool(body.get("bounded")))))
            found.cycles += 1
        elif "decisions" in body:
            replayed = [msgspec.to_builtins(each) for each in last]
            found.decisions += len(replayed)
            if replayed != body["decisions"] and found.difference is None:
                found.difference = Difference(number, now, body["decisions"], replayed)
                if until_difference:
                    break
    if engine is None:
        raise InputError(place, "", "holds no recording")
    return found


def _line(line: bytes, where: str) -> Body:
    try:
        body = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(where, "", f"not a line of a recording: {error}") from None
    if too_deep(body):
        raise InputError(where, "", f"nested more than {DEEPEST} deep")
    return body


def _engine(written: Any, where: str) -> Engine:
    try:
        return Engine(written["policy"], _value(written["knobs"], where))
    except (AliquotError, KeyError, TypeError) as error:
        raise InputError(where, "engine", f"cannot be made: {error}") from None


def _apply(engine: Engine, written: Any, where: str) -> None:
    try:
        engine.apply(_value(written, where))
    except InputError:
        raise
    except AliquotError as error:
        raise InputError(where, "event", str(error)) from None


def _whole(value: Any, where: str) -> int:
    if type(value) is not int:
        raise InputError(where, "cycle", f"{value!r:.40} is not a whole number of nanoseconds")
    return value


def _plain(value: Any) -> Any:
    """A value as JSON, of which `_value` makes an equal one."""
    if value is None or type(value) in (str, int, bool):
        return value
    if isinstance(value, Enum):
        return {_TYPE: type(value).__name__, _OF: value.value}
    if is_dataclass(value) and not isinstance(value, type):
        return {_TYPE: type(value).__name__, **dict(_fields(value))}
    if isinstance(value, tuple):
        listed = [_plain(each) for each in value]
        return listed if type(value) is tuple else {_TYPE: type(value).__name__, _OF: listed}
    if isinstance(value, frozenset):
        return {_TYPE: "set", _OF: [_plain(each) for each in sorted(value)]}
    if isinstance(value, dict):
        return {_TYPE: "map", _OF: [[_plain(key), _plain(each)] for key, each in value.items()]}
    raise TypeError(f"{value!r} has no place in an event")


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    for field in fields(value):
        if not field.init:
            continue
        content = getattr(value, field.name)
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        if default is MISSING or content != default:
            yield field.name, _plain(content)


def _value(written: Any, where: str) -> Any:
    """The value that was written; anything that is no value of the engine is refused."""
    if isinstance(written, list):
        return tuple(_value(each, where) for each in written)
    if not isinstance(written, dict):
        return written
    name = written.get(_TYPE)
    if name == "set":
        return frozenset(_value(each, where) for each in written[_OF])
    if name == "map":
        return {_value(key, where): _value(each, where) for key, each in written[_OF]}
    found = _TYPES.get(name) if isinstance(name, str) else None
    if found is None:
        raise InputError(where, "", f"{name!r:.40} is no type of the engine")
    try:
        if _OF in written:
            inside = _value(written[_OF], where)
            return found(*inside) if isinstance(inside, tuple) else found(inside)
        rest = {key: _value(each, where) for key, each in written.items() if key != _TYPE}
        return found(**rest)
    except (TypeError, ValueError) as error:
        raise InputError(where, str(name), str(error)) from None
