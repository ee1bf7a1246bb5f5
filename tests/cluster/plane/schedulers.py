"""`aliquot scheduler` in a process of its own, as fast as a fork.

Most of what a start costs is Python reading modules. So a process that has read them waits, and is
copied for each scheduler: what runs in the copy is the command itself, with its options.
"""

import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aliquot.cli.commands import daemon, scheduler
from aliquot.cli.main import main
from aliquot.json import Body
from aliquot.kube.control import control_plane
from aliquot.validation import inputs
from tests.cluster.api.polling import eventually

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([__name__])
_READ = (daemon, inputs, control_plane, scheduler)
"""What the command imports when it runs: all of it is read before the fork."""


@dataclass(frozen=True)
class Running:
    """A scheduler that runs, and what it logs."""

    process: multiprocessing.process.BaseProcess
    log: Path

    @property
    def lines(self) -> list[Body]:
        """What it has logged so far, line by line."""
        said = self.log.read_text(errors="replace").splitlines()
        return [json.loads(line) for line in said if line.startswith("{")]

    def says(self, event: str, **fields: object) -> bool:
        """Has it logged this?"""
        wanted = {"event": event, **fields}.items()
        return any(wanted <= line.items() for line in self._plain())

    def wait_for(self, event: str, **fields: object) -> None:
        """Wait until it has logged this."""

        def said() -> bool:
            assert self.process.is_alive() or self.says(event, **fields), self.log.read_text()
            return self.says(event, **fields)

        eventually(said, seconds=30)

    def stop(self) -> None:
        """End it as a cluster does: it tidies up."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it without a warning."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        if self.process.is_alive() and self.process.pid is not None:
            os.kill(self.process.pid, number)
        self.process.join(15)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
            raise AssertionError(f"the scheduler does not end: {self.log.read_text()[-3000:]}")

    def _plain(self) -> list[Body]:
        plain = (str, int, float, bool)
        return [
            {key: value for key, value in line.items() if isinstance(value, plain)}
            for line in self.lines
        ]


def start(kubeconfig: Path, log: Path, options: Sequence[str]) -> Running:
    """Start `aliquot scheduler` with these options, on this cluster."""
    words = ["scheduler", "--kubeconfig", str(kubeconfig), "--log-format", "json"]
    words += ["--host", "127.0.0.1", "--health-port", "0", *options]
    log.touch()
    process = _FORKS.Process(target=_be_the_command, args=(words, str(log)), daemon=True)
    process.start()
    return Running(process, log)


def _be_the_command(words: list[str], log: str) -> None:
    with open(log, "ab", buffering=0) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.argv = ["aliquot", *words]
    main()
