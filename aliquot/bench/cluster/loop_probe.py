"""A probe inside the scheduler that is measured: how long its main loop and its cycles take.

    python -m aliquot.bench.cluster.loop_probe FILE scheduler --kubeconfig ...

runs the command as `aliquot` does, with a task in its event loop that asks to be woken every few
milliseconds and writes a line into FILE whenever it was woken late: so long must a watch event, the
answer to a write, or any other task wait. Every cycle that takes long is a line, too. The clock is
the machine's monotonic one, so that the process that reads the lines shares it.
"""

import asyncio
import json
import runpy
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from aliquot.engine import Engine

_EVERY = 0.005
"""Seconds between two wake-ups: small beside the budget of 0.1 s, and 200 wake-ups a second cost
less than 1% of a core."""
_LATE = 0.01
"""Seconds from which a delay or a cycle is noted: a tenth of the budget."""

LOOP, CYCLE = "loop", "cycle"


@dataclass(frozen=True, slots=True)
class Delay:
    """One time that the main loop, or a cycle of the engine, took long."""

    what: str
    """`loop` or `cycle`."""
    at: float
    """When it was over, on the clock of `time.perf_counter`."""
    seconds: float
    cpu: float
    """Of them, seconds in which the main thread had a processor."""


def read(file: Path, since: float) -> list[Delay]:
    """The delays that were noted from this time on."""
    if not file.exists():
        return []
    lines = file.read_text().splitlines()
    found = [Delay(*json.loads(line)) for line in lines if line.endswith("]")]
    return [each for each in found if each.at >= since]


class _Notes:
    """Writes delays into a file, a line each."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def add(self, what: str, seconds: float, cpu: float) -> None:
        if seconds >= _LATE:
            self._file.write(f"{json.dumps([what, time.perf_counter(), seconds, cpu])}\n")
            self._file.flush()


async def _probe(notes: _Notes) -> None:
    while True:
        began, cpu = time.perf_counter(), time.thread_time()
        await asyncio.sleep(_EVERY)
        notes.add(LOOP, time.perf_counter() - began - _EVERY, time.thread_time() - cpu)


def _with_probe(
    run: Callable[..., Any], notes: _Notes
) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """`asyncio.run`, with the probe beside the work."""

    async def probed(work: Coroutine[Any, Any, Any]) -> Any:
        probe = asyncio.create_task(_probe(notes))
        try:
            return await work
        finally:
            probe.cancel()

    return lambda work: run(probed(work))


def _timed(cycle: Callable[..., Any], notes: _Notes) -> Callable[..., Any]:
    """`Engine.cycle`, timed."""

    def timed(*given: Any, **named: Any) -> Any:
        began, cpu = time.perf_counter(), time.thread_time()
        try:
            return cycle(*given, **named)
        finally:
            notes.add(CYCLE, time.perf_counter() - began, time.thread_time() - cpu)

    return timed


def main() -> None:
    """Run the command after the file's name."""
    file, *command = sys.argv[1:]
    with Path(file).open("w") as opened:
        notes = _Notes(opened)
        patched: list[tuple[Any, str, Callable[..., Any]]] = [
            (asyncio, "run", _with_probe(asyncio.run, notes)),
            (Engine, "cycle", _timed(Engine.cycle, notes)),
        ]
        for owner, name, function in patched:
            setattr(owner, name, function)
        sys.argv = ["aliquot", *command]
        runpy.run_module("aliquot", run_name="__main__")


if __name__ == "__main__":
    main()
