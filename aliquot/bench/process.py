"""A process that we start: what it said, what it uses, and that it ends when we do.

What it prints goes to `log` in a folder of its own, and into the error if it does not come up. It
is asked to end when the block is left, whatever for, and killed if it does not; on Linux it is also
killed when we are. It stays in our process group, so that Ctrl-C in a terminal reaches it, too.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from aliquot.bench import interruption
from aliquot.errors import ProcessError

_PATIENCE = 180.0
"""Seconds to become ready: generous, for busy machines; a process that ends fails at once."""
_GRACE = 10.0
"""Seconds between SIGTERM and SIGKILL."""
_LAST_WORDS = 3000
"""Characters of the log that an error quotes."""
_MIB = 2**20
_TIE = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the process that started this one is gone")
for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores, and exec keeps ignored
    signal.signal(number, signal.SIG_DFL)
os.execvp(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used so far."""

    cpu: float
    """Seconds of processor time, in the program and in the kernel."""
    resident: float
    """MiB of memory now."""
    peak: float
    """The most MiB that it ever had."""


@dataclass(frozen=True, slots=True)
class Child:
    """A process that is running, and the folder it lives in."""

    process: "subprocess.Popen[bytes]"
    folder: Path

    def said(self) -> str:
        """The end of what it has printed."""
        return (self.folder / "log").read_text(errors="replace")[-_LAST_WORDS:]

    def check(self) -> None:
        """Fail if it has ended."""
        if (code := self.process.poll()) is not None:
            raise ProcessError(f"{self.folder.name} ended with {code}: {self.said()}")

    def wait(self, ready: Callable[[], bool], pause: float = 0.05) -> None:
        """Wait until it is ready; fail if it ends before, or takes too long."""
        end = time.monotonic() + _PATIENCE
        while not ready():
            interruption.check()
            self.check()
            if time.monotonic() > end:
                words = f"is not ready after {_PATIENCE:.0f} s: {self.said()}"
                raise ProcessError(f"{self.folder.name} {words}")
            time.sleep(pause)

    def usage(self) -> Usage:
        """What it has used: as Linux tells it."""
        about = Path("/proc") / str(self.process.pid)
        try:
            times = (about / "stat").read_text().rpartition(")")[2].split()
            lines = (about / "status").read_text().splitlines()
        except FileNotFoundError:
            self.check()
            raise ProcessError("what a process uses is read from /proc, as on Linux") from None
        said = dict(line.split(":", 1) for line in lines)
        resident, peak = (int(said[word].split()[0]) * 1024 / _MIB for word in ("VmRSS", "VmHWM"))
        ticks = int(times[11]) + int(times[12])
        return Usage(ticks / os.sysconf("SC_CLK_TCK"), resident, peak)


def machine_cpu() -> float:
    """Seconds of processor time that all processes have used since the machine started."""
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    waiting = {3, 4}  # idle, and idle for a disk
    ticks = sum(int(word) for place, word in enumerate(words[:8]) if place not in waiting)
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def child(command: Sequence[str], folder: Path) -> Iterator[Child]:
    """Run a command in a folder for as long as the block lasts.

    The thread that enters the block must outlive it: Linux takes that thread for the parent.
    """
    folder.mkdir(parents=True, exist_ok=True)
    process = None
    try:
        with (folder / "log").open("ab") as log:
            process = subprocess.Popen(_tied(command), stdout=log, stderr=log, cwd=folder)
        yield Child(process, folder)
    finally:
        if process is not None:
            _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ask it to end, and kill it if it does not, or if there is no time to wait."""
    try:
        process.terminate()
        process.wait(timeout=_GRACE)
    except subprocess.TimeoutExpired:
        pass
    finally:
        process.kill()
        process.wait()


def _tied(command: Sequence[str]) -> list[str]:
    """The command, killed by Linux when we are gone: also if we are killed ourselves.

    What arranges that runs in the new process, in a Python of its own that the command replaces.
    Between fork and exec of this process it could not: other threads may hold locks there.
    """
    if sys.platform != "linux":
        return list(command)
    return [sys.executable, "-I", "-S", "-c", _TIE, str(os.getpid()), *command]
