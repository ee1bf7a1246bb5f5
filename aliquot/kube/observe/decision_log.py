"""The decision log: what the control plane decided, with the numbers of that moment.

Bounded by size and by age: it is kept in memory, and served at /debug/decisions; with a folder,
also in files there, which outlive the process. A line is JSON: when, and a decision about one pod
(`mirror.decision_entries`). Written by the main loop, read by the thread that answers probes.
"""

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import structlog

from aliquot.dialects.core.times import moment
from aliquot.engine import SECOND, Decision, Engine
from aliquot.mirror.decision_entries import entries

_log = structlog.get_logger()
_FILES = 8
"""Files of a folder: the oldest is dropped as a whole, an eighth of what is kept."""
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is kept."""

    size: int = 16 * 2**20
    """Bytes: some 50,000 decisions: an hour of a busy cluster, weeks of a quiet one."""
    age: int = 24 * 3600 * SECOND


class DecisionLog:
    """The last decisions, the oldest first."""

    def __init__(self, bounds: Bounds | None = None, folder: Path | None = None) -> None:
        self._bounds = bounds or Bounds()
        self._lines: deque[tuple[int, bytes]] = deque()
        self._size = 0
        self._lock = threading.Lock()
        self._files = _Files(folder, self._bounds) if folder is not None else None

    def note(self, engine: Engine, decisions: Sequence[Decision], now: int) -> None:
        """Add the decisions of a cycle; `now` is the wall clock, in nanoseconds."""
        if not decisions:
            return
        at = _encode({"at": moment(now)})[:-1] + b","
        lines = [at + _encode(each)[1:] for each in entries(engine, decisions)]
        with self._lock:
            for line in lines:
                self._lines.append((now, line))
                self._size += len(line)
            self._trim(now)
        if self._files is not None:
            self._files.append(lines, now)

    def _trim(self, now: int) -> None:
        while self._lines and (
            self._size > self._bounds.size or self._lines[0][0] < now - self._bounds.age
        ):
            _, line = self._lines.popleft()
            self._size -= len(line)

    def lines(self, pod: str = "", most: int = 0) -> list[bytes]:
        """The lines, those about a pod, or the last so many."""
        with self._lock:
            found = [line for _, line in self._lines]
        if pod:
            named = _encode(pod)
            found = [line for line in found if named in line]
        return found[-most:] if most else found


class _Files:
    """The files of a folder: a line is appended to the newest; the oldest is deleted."""

    def __init__(self, folder: Path, bounds: Bounds) -> None:
        self._folder, self._bounds = folder, bounds
        self._newest: Path | None = None
        self._failed = False

    def append(self, lines: Iterable[bytes], now: int) -> None:
        """Append lines; a disk that is full is logged once, and never stops a decision."""
        try:
            self._append(b"".join(line + b"\n" for line in lines), now)
            self._failed = False
        except OSError as error:
            if not self._failed:
                _log.error("the decision log cannot be written", problem=str(error))
            self._failed = True

    def _append(self, text: bytes, now: int) -> None:
        newest = self._newest
        if newest is None or newest.stat().st_size > self._bounds.size // _FILES:
            self._folder.mkdir(parents=True, exist_ok=True)
            newest = self._newest = self._folder / f"decisions-{now}.jsonl"
            self._drop_old(now)
        with newest.open("ab") as file:
            file.write(text)

    def _drop_old(self, now: int) -> None:
        size = 0
        for file in sorted(self._folder.glob("decisions-*.jsonl"), key=_started, reverse=True):
            about = file.stat()
            size += about.st_size
            if size > self._bounds.size or about.st_mtime_ns < now - self._bounds.age:
                file.unlink()


def _started(file: Path) -> int:
    word = file.stem.rpartition("-")[2]
    return int(word) if word.isdecimal() else 0


def answer(lines: Iterable[bytes], leads: bool) -> Iterator[bytes]:
    """The body of an answer: whether this replica decides, then the lines."""
    yield _encode({"leader": leads})
    yield from lines
