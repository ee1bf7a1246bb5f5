"""Control planes in processes of their own, of which one leads: to be killed, stopped and woken."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PATIENCE = 60.0


class Replica:
    """One of them."""

    def __init__(self, kubeconfig: Path, log: Path) -> None:
        self._log = log
        command = [sys.executable, "-m", "tests.cluster.plane.leader", str(kubeconfig)]
        with log.open("wb") as said:
            self._process = subprocess.Popen(command, stdout=said, stderr=said)

    def told(self, word: str, since: float = 0.0) -> list[float]:
        """When it said this, on the clock of the day."""
        *lines, _ = self._log.read_text().split("\n")
        said = [line.split() for line in lines]
        found = [float(words[0]) for words in said if words[1:2] == [word]]
        return [each for each in found if each >= since]

    @property
    def leads(self) -> bool:
        """Does it decide?"""
        return len(self.told("leads")) > len(self.told("rests"))

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it, without a chance to clean up."""
        self._process.kill()
        self._process.wait()

    def shown(self) -> str:
        """What it said last."""
        return self._log.read_text()[-3000:]


class Replicas:
    """All that run."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self.running: list[Replica] = []
        self._kubeconfig = kubeconfig
        self._folder = folder
        self._number = 0

    def start(self) -> Replica:
        """Start another one."""
        self._number += 1
        log = self._folder / f"replica-{self._number}"
        self.running.append(Replica(self._kubeconfig, log))
        return self.running[-1]

    def kill(self, one: Replica) -> None:
        """End one."""
        one.kill()
        self.running.remove(one)

    async def leader(self, but: Replica | None = None) -> Replica:
        """The one that leads, as soon as one does."""
        end = time.monotonic() + _PATIENCE
        while True:
            for each in self.running:
                if each is not but and each.leads:
                    return each
            assert time.monotonic() < end, [each.shown() for each in self.running]
            await asyncio.sleep(0.02)


@contextmanager
def replicas(kubeconfig: Path, folder: Path) -> Iterator[Replicas]:
    """Replicas that have ended when the block has."""
    made = Replicas(kubeconfig, folder)
    try:
        yield made
    finally:
        for each in made.running:
            each.kill()
