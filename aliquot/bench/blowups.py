"""Inputs that once blew up, measured: processor time at half the size and at the whole, and memory.

Every run is a process of its own, so that its memory is its own. What counts is processor time,
which other processes on the machine lengthen less than the time that passes. Growth is the ratio of
the two sizes, without what a process takes to start: 2 for work in proportion, 4 for its square.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from aliquot.bench import interruption
from aliquot.bench.blowup_inputs import BLOWUPS, Blowup
from aliquot.bench.figure import Figure
from aliquot.errors import ProcessError

_KIB = 1024
_MOST_SECONDS, _MOST_MIB = "<= 5", "<= 500"
"""The budgets of every input."""
_LEAST = 0.05
"""Seconds below which a time is noise, and growth says nothing."""
_REFUSED = 2
"""The exit code for an input that is refused."""


def blowups(progress: Callable[[str], None]) -> list[Figure]:
    """Measure every input at half its size and at its size."""
    with tempfile.TemporaryDirectory() as folder:
        start, _ = _run(Blowup("nothing", 0, lambda _: iter(())), 0, Path(folder))
        figures = []
        for each in BLOWUPS:
            progress(f"{each.name}: {each.size:,}")
            figures += _measure(each, Path(folder), start)
        return figures


def _measure(blowup: Blowup, folder: Path, start: float) -> list[Figure]:
    half, size, name = blowup.size // 2, blowup.size, blowup.name
    (first, _), (second, peak) = (_run(blowup, each, folder) for each in (half, size))
    growth = max(second - start, _LEAST) / max(first - start, _LEAST)
    return [
        Figure(f"{name}: {half:,}", first, "s"),
        Figure(f"{name}: {size:,}", second, "s", _MOST_SECONDS),
        Figure(f"{name}: growth", growth, "x"),
        Figure(f"{name}: memory", peak, "MiB", _MOST_MIB),
    ]


def _run(blowup: Blowup, size: int, folder: Path) -> tuple[float, float]:
    """Processor seconds and MiB of a run; fails if it ends in another way than it should."""
    interruption.check()
    file = folder / "objects.json"
    file.write_text("\n".join(json.dumps(body) for body in blowup.build(size)))
    command = [sys.executable, "-m", "aliquot", *blowup.command, str(file)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
        try:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            if process.returncode is None:
                process.kill()
    expected = _REFUSED if blowup.refused and size else 0
    if process.returncode != expected:
        said = (folder / "log").read_text(errors="replace")[-1_000:]
        raise ProcessError(f"{blowup.name}: {size}: ended with {process.returncode}: {said}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / _KIB
