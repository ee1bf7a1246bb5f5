"""Whatever a file holds, a command answers: in time, with one of three exit codes, as it says.

The time is bounded: 10 s in a sample, 45 s in the whole campaign, or ALIQUOT_FUZZ_SECONDS. Inputs
follow from ALIQUOT_FUZZ_SEED and their number, so a failure can be had again.
"""

import io
import os
import re
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from types import FrameType

import pytest
import yaml

from aliquot.cli.main import run
from aliquot.json import Body
from tests.campaign import seconds
from tests.cli.conftest import Ran
from tests.cli.mutations import seeds, spoiled

SECONDS = seconds(5, 45)
SEED = os.environ.get("ALIQUOT_FUZZ_SEED", "aliquot")
FEWEST_INPUTS = 300
LONGEST_RUN = 5.0
LONGEST_SHRINKING = 20.0
SIMULATE_OUTPUTS, VALIDATE_OUTPUTS = ["table", "json", "yaml", "objects"], ["text", "json"]
MANY_PODS = re.compile(rb"""(replicas|parallelism|completions)["']?\s*:\s*[+0]*[0-9_]{4,7}\b""")
"""Thousands of pods are allowed, and take their time: not what is looked for here."""


class TooSlowError(BaseException):
    """Not an Exception, so that nothing on the way takes it for its own."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Counts the processor's time, not the clock's: machines are shared."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def command(*words: str) -> Ran:
    """Run a command in this process, with streams like those of a terminal."""
    out, err = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace") for _ in range(2)
    )
    with redirect_stdout(out), redirect_stderr(err), time_limit(LONGEST_RUN):
        code = run(words)
    texts = []
    for stream in (out, err):
        stream.flush()
        stream.seek(0)
        texts.append(stream.read())
    return Ran(code, *texts)


def complaint(content: bytes, file: Path, outputs: tuple[str, str]) -> str | None:
    """What the commands do with this input that they should not do, if anything."""
    file.write_bytes(content)
    try:
        simulated = command("simulate", str(file), "-o", outputs[0])
        validated = command("validate", str(file), "-o", outputs[1])
    except TooSlowError:
        return f"took longer than {LONGEST_RUN} s"
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {Path(where.filename).name}, {where.name}"
    for name, ran in (("simulate", simulated), ("validate", validated)):
        if ran.code not in (0, 1, 2):
            return f"{name}: exit code {ran.code}"
        if ran.code == 2 and (ran.out or len(ran.err.splitlines()) != 1):
            return f"{name}: exit code 2 with more or less than one line on stderr"
    if simulated.code == 1:
        return "simulate: exit code 1"
    objected = simulated.code == 0 and "(a cluster would refuse it)" in simulated.err
    in_status = ": status" in simulated.err and "status" in validated.out
    if (simulated.code == 2 or objected) != (validated.code > 0) and not in_status:
        return f"simulate says {simulated.code}, validate {validated.code}"
    return None


def shrunk(content: bytes, wrong: str, file: Path, outputs: tuple[str, str]) -> bytes:
    """The input without as many of its lines as can be spared in the time there is."""
    stop_at = time.monotonic() + LONGEST_SHRINKING
    lines = content.split(b"\n")
    size = max(len(lines) // 2, 1)
    while size:
        at = 0
        while at < len(lines) and time.monotonic() < stop_at:
            fewer = lines[:at] + lines[at + size :]
            if complaint(b"\n".join(fewer), file, outputs) == wrong:
                lines = fewer
            else:
                at += size
        size //= 2
    return b"\n".join(lines)


def test_spoiled_input_is_answered_in_time_and_without_a_traceback(tmp_path: Path) -> None:
    valid, file = seeds(), tmp_path / "input.yaml"
    stop_at = time.monotonic() + SECONDS
    number = 0
    while number < FEWEST_INPUTS or time.monotonic() < stop_at:
        random = Random(f"{SEED}-{number}")
        content = spoiled(random, random.choice(valid))
        outputs = random.choice(SIMULATE_OUTPUTS), random.choice(VALIDATE_OUTPUTS)
        wrong = None if MANY_PODS.search(content) else complaint(content, file, outputs)
        if wrong is not None:
            shown = shrunk(content, wrong, file, outputs).decode("utf-8", "backslashreplace")
            pytest.fail(f"input {number} of seed {SEED!r}, -o {outputs}: {wrong}\n{shown}")
        number += 1


@pytest.mark.parametrize("documents", seeds())
def test_what_the_fuzzer_starts_from_is_valid(documents: list[Body], tmp_path: Path) -> None:
    file = tmp_path / "input.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    assert command("simulate", str(file)).code == 0
    assert command("validate", str(file)).code == 0
