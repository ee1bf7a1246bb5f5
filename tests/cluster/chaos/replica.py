"""`aliquot scheduler` as a process, on a clock that can be made to jump.

    python -m tests.cluster.chaos.replica FILE scheduler --kubeconfig ...

FILE holds the seconds by which the time of day is wrong, as a double; they are read at each look at
the clock. The monotonic clock does not jump: no machine lets it.
"""

import datetime
import importlib
import json
import mmap
import runpy
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_CLOCKED = (
    "aliquot.kube.leader.leader_election",
    "aliquot.kube.observe.health",
    "aliquot.kube.execution.pod_status",
)
"""The modules that look at the date."""
_WRONG = struct.Struct("d")


class Replica:
    """One replica, its log and its clock; it can be stopped, woken and killed."""

    def __init__(self, name: str, kubeconfig: Path, config: Path, folder: Path, port: int) -> None:
        self.name = name
        self.port = port
        """Of its probes and metrics."""
        self.log = folder / f"{name}.log"
        self._clock = folder / f"{name}.clock"
        self._clock.write_bytes(_WRONG.pack(0.0))
        command = [sys.executable, "-m", __name__, str(self._clock), "scheduler"]
        command += ["--kubeconfig", str(kubeconfig), "--config", str(config)]
        command += ["--host", "127.0.0.1", "--health-port", str(port), "--log-format", "json"]
        with self.log.open("ab") as said:
            self.process = subprocess.Popen(command, stdout=said, stderr=said)

    @property
    def leads(self) -> bool:
        """Does it decide, as its log says?"""
        events = [line.get("event") for line in self.lines()]
        last = [each for each in events if each in ("leading", "decides no longer")]
        return bool(last) and last[-1] == "leading" and self.process.poll() is None

    def lines(self) -> list[dict[str, Any]]:
        """What it has logged."""
        said = self.log.read_text(errors="replace").splitlines()
        return [json.loads(line) for line in said if line.startswith("{") and line.endswith("}")]

    def jump(self, seconds: float) -> None:
        """Make its time of day wrong by so many seconds."""
        with self._clock.open("r+b") as opened:  # in place: the replica has it mapped
            opened.write(_WRONG.pack(seconds))

    def stop(self) -> None:
        """Let it sleep."""
        self.process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it, without a chance to clean up."""
        self.process.kill()
        self.process.wait()


def _wrong_by(file: Path) -> Callable[[], float]:
    with file.open("rb") as opened:
        shared = mmap.mmap(opened.fileno(), _WRONG.size, access=mmap.ACCESS_READ)
    return lambda: float(_WRONG.unpack_from(shared)[0])


def main() -> None:
    """Run the command on that clock."""
    file, *command = sys.argv[1:]
    wrong, true_time, true_ns = _wrong_by(Path(file)), time.time, time.time_ns

    class Jumping(datetime.datetime):
        """The date by the wrong clock."""

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return datetime.datetime.now(tz) + datetime.timedelta(seconds=wrong())

    patched: list[tuple[Any, str, Any]] = [
        (time, "time", lambda: true_time() + wrong()),
        (time, "time_ns", lambda: true_ns() + int(wrong() * 1e9)),
        *((importlib.import_module(each), "datetime", Jumping) for each in _CLOCKED),
    ]
    for owner, name, replacement in patched:
        setattr(owner, name, replacement)
    sys.argv = ["aliquot", *command]
    runpy.run_module("aliquot", run_name="__main__")


if __name__ == "__main__":
    main()
