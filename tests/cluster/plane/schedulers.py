"""`aliquot scheduler` in a process of its own, and what it logs."""

import json
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

from aliquot.json import Body
from tests.cluster.api.polling import eventually
from tests.forks import fork


@dataclass(frozen=True)
class Running:
    """A scheduler that runs, and what it logs."""

    process: BaseProcess
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

        eventually(said)

    def stop(self) -> None:
        """End it as a cluster does: it tidies up."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it without a warning."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        if self.process.is_alive() and self.process.pid is not None:
            os.kill(self.process.pid, number)
        self.process.join(60)
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
    return Running(fork(words, log, log), log)
