"""A process that was started ends with the block, whenever a signal arrives and however we end."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from aliquot.bench import interruption
from aliquot.bench.process import child
from aliquot.errors import ProcessError
from tests.cluster.api.polling import eventually
from tests.signals import sigint

_SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
_PARENT = f"""
import sys, time
from pathlib import Path
from aliquot.bench.process import child
with child({_SLEEP!r}, Path(sys.argv[1])) as made:
    print(made.process.pid, flush=True)
    time.sleep(600)
"""
both = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
Starts = list["subprocess.Popen[bytes]"]


@pytest.fixture(params=[False, True], ids=["taken", "ignored"])
def _sigint(request: pytest.FixtureRequest) -> Iterator[None]:
    with sigint(ignored=request.param):
        yield


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> Starts:
    """Every process that is started."""
    return _started(monkeypatch, lambda: None)


def _started(monkeypatch: pytest.MonkeyPatch, then: Callable[[], None]) -> Starts:
    """Every process that is started; and something happens before the start returns."""
    found: Starts = []

    class Popen(subprocess.Popen[bytes]):
        def __init__(self, *words: Any, **options: Any) -> None:
            super().__init__(*words, **options)
            found.append(self)
            then()

    monkeypatch.setattr(subprocess, "Popen", Popen)
    return found


@both
@pytest.mark.usefixtures("_sigint")
def test_a_signal_during_the_start_of_a_process_ends_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int
) -> None:
    starts = _started(monkeypatch, lambda: signal.raise_signal(number))
    with pytest.raises(KeyboardInterrupt), interruption.noted(), child(_SLEEP, tmp_path) as made:
        made.wait(lambda: False)
    assert [each.returncode for each in starts] == [-signal.SIGTERM]


@both
@pytest.mark.usefixtures("_sigint")
def test_a_signal_while_the_loop_runs_cancels_its_work(
    starts: Starts, tmp_path: Path, number: int
) -> None:
    async def work() -> None:
        with child(_SLEEP, tmp_path):
            signal.raise_signal(number)
            await asyncio.Event().wait()

    with pytest.raises(KeyboardInterrupt), interruption.noted():
        interruption.run(work())
    assert [each.returncode for each in starts] == [-signal.SIGTERM]


@both
def test_a_signal_before_the_loop_runs_lets_no_work_begin(number: int) -> None:
    async def work() -> NoReturn:
        raise AssertionError("it has begun")

    def story() -> None:
        with interruption.noted():
            signal.raise_signal(number)
            interruption.run(work())

    with pytest.raises(KeyboardInterrupt):
        story()


@both
def test_more_signals_do_not_keep_a_process_from_being_ended(
    starts: Starts, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int
) -> None:
    wait = subprocess.Popen.wait

    def interrupted(process: "subprocess.Popen[bytes]", timeout: float | None = None) -> int:
        signal.raise_signal(number)
        return wait(process, timeout)

    async def work() -> None:
        with child(_SLEEP, tmp_path / "inner"):
            signal.raise_signal(number)
            await asyncio.Event().wait()

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt), interruption.noted(), child(_SLEEP, tmp_path / "outer"):
        interruption.run(work())
    assert [each.returncode for each in starts] == [-signal.SIGTERM] * 2


def test_a_signal_is_the_cause_of_what_fails_after_it() -> None:
    def story() -> None:
        with interruption.noted():
            signal.raise_signal(signal.SIGINT)
            raise ProcessError("the server got it, too")

    with pytest.raises(KeyboardInterrupt):
        story()


def test_an_error_without_a_signal_is_that_error() -> None:
    with pytest.raises(ProcessError), interruption.noted():
        raise ProcessError("the server does not start")
    with interruption.noted():
        interruption.check()


def test_a_process_that_does_not_listen_is_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("aliquot.bench.process._GRACE", 0.1)
    words = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True)"
    with child([sys.executable, "-S", "-c", f"{words}; time.sleep(600)"], tmp_path) as made:
        made.wait(lambda: made.said() == "1\n")
    assert made.process.returncode == -signal.SIGKILL


def test_a_process_that_cannot_be_run_says_so(tmp_path: Path) -> None:
    with (
        pytest.raises(ProcessError, match="No such file"),
        child(["/nowhere/it"], tmp_path) as made,
    ):
        made.wait(lambda: False)


@pytest.mark.skipif(sys.platform != "linux", reason="NOT run: only Linux tells of a parent's end")
def test_a_process_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _PARENT, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        try:
            assert parent.stdout is not None
            pid = int(parent.stdout.readline())
        finally:
            parent.kill()
    eventually(lambda: not _runs(pid))


@pytest.mark.skipif(sys.platform != "linux", reason="NOT run: only Linux has /proc")
def test_a_process_finds_signals_as_its_parent_would_have_it(tmp_path: Path) -> None:
    """The Python that ties a process to its parent ignores two; the process must not."""
    by_python = 1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1
    with child(["/bin/grep", "SigIgn", "/proc/self/status"], tmp_path) as made:
        made.process.wait(timeout=60)
    assert not int(made.said().split()[1], 16) & by_python


def _runs(pid: int) -> bool:
    """Is it there, and more than what is left until its parent has asked how it ended?"""
    try:
        words = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return words.rpartition(")")[2].split()[0] != "Z"
