"""Whoever is measured: a scheduler, as the process that a user would start.

Nobody has an election to win, unless it is the election that is measured. kube-scheduler is started
as it comes, and once more with its limit on requests raised, because by default that limit, not the
scheduler, is what is measured.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from aliquot.bench import envtest
from aliquot.bench.cluster.cluster import Cluster
from aliquot.bench.process import Child, child
from aliquot.errors import ProcessError

_PATIENCE = 120.0
_LOOK = 0.02
_QPS, _BURST = 5000, 10000

Command = Callable[[Path, Path, int], list[str]]
"""Of a kubeconfig, a folder to write into, and the port of its probes."""


@dataclass(frozen=True, slots=True)
class SchedulerProcess:
    """A scheduler: what it is called, which pods are its own, how it is started and asked."""

    title: str
    scheduler_name: str
    command: Command
    scheme: str
    """Of its probes."""
    slow: bool = False
    """Is it held back on purpose, so that waiting for the last pod would take minutes?"""


@dataclass(frozen=True, slots=True)
class Running:
    """A scheduler that has been started."""

    child: Child
    began: float
    """When, on the clock of `time.perf_counter`."""
    ready: str

    async def until_ready(self) -> float:
        """Wait until it says that it is ready; how many seconds that took from its start."""
        end = self.began + _PATIENCE
        while not await asyncio.to_thread(envtest.answers, self.ready):
            self.child.check()
            if time.perf_counter() > end:
                words = f"is not ready after {_PATIENCE:.0f} s: {self.child.said()}"
                raise ProcessError(f"{self.child.folder.name} {words}")
            await asyncio.sleep(_LOOK)
        return time.perf_counter() - self.began


def aliquot(*options: str) -> SchedulerProcess:
    """Aliquot, as `aliquot scheduler` starts it with these options."""

    def command(file: Path, folder: Path, port: int) -> list[str]:
        words = [sys.executable, "-m", "aliquot", "scheduler", "--kubeconfig", str(file)]
        return [*words, "--host", "127.0.0.1", "--health-port", str(port), *options]

    return SchedulerProcess("aliquot", "aliquot", command, "http")


def alone() -> SchedulerProcess:
    """Aliquot that leads, whoever else there is."""
    return aliquot("--no-leader-election")


def kube_schedulers(binary: Path) -> list[SchedulerProcess]:
    """kube-scheduler as it comes, and with its limits raised."""

    def limited(file: Path, folder: Path, port: int) -> list[str]:
        return _kube_scheduler(binary, file, folder, port, {})

    def raised(file: Path, folder: Path, port: int) -> list[str]:
        return _kube_scheduler(binary, file, folder, port, {"qps": _QPS, "burst": _BURST})

    name = "default-scheduler"
    return [
        SchedulerProcess("kube-scheduler", name, limited, "https", slow=True),
        SchedulerProcess(f"kube-scheduler, qps {_QPS:,}", name, raised, "https"),
    ]


@asynccontextmanager
async def started(
    contender: SchedulerProcess, cluster: Cluster, folder: str = "scheduler"
) -> AsyncIterator[Running]:
    """The scheduler's process, for as long as the block lasts."""
    where = cluster.folder / folder
    where.mkdir(parents=True, exist_ok=True)
    (port,) = envtest.free_ports(1)
    command = contender.command(cluster.server.kubeconfig, where, port)
    began = time.perf_counter()
    with child(command, where) as made:
        yield Running(made, began, f"{contender.scheme}://127.0.0.1:{port}/readyz")


def _kube_scheduler(
    binary: Path, file: Path, folder: Path, port: int, limits: dict[str, int]
) -> list[str]:
    said = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(file), **limits},
        "leaderElection": {"leaderElect": False},
    }
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(said))
    command = [str(binary), "--config", str(config), "--bind-address", "127.0.0.1"]
    return [*command, "--secure-port", str(port)]
