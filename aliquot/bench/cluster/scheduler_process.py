"""The schedulers that are measured, as processes that a user would start.

They run without leader election, unless the election is measured. kube-scheduler is measured with
its defaults, and once more with the rate limit of its client raised: by default that limit decides
how fast it binds, not the scheduler.
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
"""Seconds to become ready: far above the budget of 5, for slow machines."""
_LOOK = 0.02
"""Seconds between two probes: the precision of the time to ready."""
_SETTLED_LOOK = 0.05
"""Seconds between two looks whether all has settled."""
_QPS, _BURST = 5000, 10000
"""Requests a second: a hundred times the defaults of kube-scheduler, 50 and 100."""

Command = Callable[[Path, Path, int], list[str]]
"""The command line, from a kubeconfig, a folder to write into, and the port of the probes."""


@dataclass(frozen=True, slots=True)
class SchedulerProcess:
    """A scheduler: its title, its schedulerName, its command line and its probes."""

    title: str
    scheduler_name: str
    command: Command
    scheme: str
    """The URL scheme of its probes."""
    slow: bool = False
    """Is its client rate-limited, so that binding all pods would take minutes?"""


@dataclass(frozen=True, slots=True)
class RunningScheduler:
    """A scheduler that has been started."""

    child: Child
    began: float
    """When it was started, on the clock of `time.perf_counter`."""
    ready: str

    async def until_ready(self) -> float:
        """Wait until its readiness probe succeeds; the seconds since its start."""
        end = self.began + _PATIENCE
        while not await asyncio.to_thread(envtest.answers, self.ready):
            self.child.check()
            if time.perf_counter() > end:
                words = f"is not ready after {_PATIENCE:.0f} s: {self.child.said()}"
                raise ProcessError(f"{self.child.folder.name} {words}")
            await asyncio.sleep(_LOOK)
        return time.perf_counter() - self.began

    async def until(self, done: Callable[[], bool], patience: float) -> None:
        """Wait until this is done; fail if the scheduler ends, or after so many seconds."""
        end = time.perf_counter() + patience
        while not done():
            if self.child.process.poll() is not None:
                raise ProcessError(f"the scheduler has ended: {self.child.said()}")
            if time.perf_counter() > end:
                raise TimeoutError(f"not done in {patience:.0f} s: {self.child.said()}")
            await asyncio.sleep(_SETTLED_LOOK)


def aliquot(*options: str) -> SchedulerProcess:
    """Aliquot, as `aliquot scheduler` starts it with these options."""

    def command(file: Path, folder: Path, port: int) -> list[str]:
        words = [sys.executable, "-m", "aliquot", "scheduler", "--kubeconfig", str(file)]
        return [*words, "--host", "127.0.0.1", "--health-port", str(port), *options]

    return SchedulerProcess("aliquot", "aliquot", command, "http")


def without_election() -> SchedulerProcess:
    """Aliquot without leader election."""
    return aliquot("--no-leader-election")


def kube_schedulers(binary: Path) -> list[SchedulerProcess]:
    """kube-scheduler with its defaults, and with its rate limit raised."""

    def limited(file: Path, folder: Path, port: int) -> list[str]:
        return _kube_scheduler(binary, file, folder, port, {})

    def unlimited(file: Path, folder: Path, port: int) -> list[str]:
        return _kube_scheduler(binary, file, folder, port, {"qps": _QPS, "burst": _BURST})

    name = "default-scheduler"
    return [
        SchedulerProcess("kube-scheduler", name, limited, "https", slow=True),
        SchedulerProcess(f"kube-scheduler, qps {_QPS:,}", name, unlimited, "https"),
    ]


@asynccontextmanager
async def run_scheduler(
    process: SchedulerProcess, cluster: Cluster, folder: str = "scheduler"
) -> AsyncIterator[RunningScheduler]:
    """The scheduler's process, for as long as the block lasts."""
    where = cluster.folder / folder
    where.mkdir(parents=True, exist_ok=True)
    (port,) = envtest.free_ports(1)
    command = process.command(cluster.server.kubeconfig, where, port)
    began = time.perf_counter()
    with child(command, where) as made:
        yield RunningScheduler(made, began, f"{process.scheme}://127.0.0.1:{port}/readyz")


def _kube_scheduler(
    binary: Path, file: Path, folder: Path, port: int, limits: dict[str, int]
) -> list[str]:
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(file), **limits},
        "leaderElection": {"leaderElect": False},
    }
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(configuration))
    command = [str(binary), "--config", str(config), "--bind-address", "127.0.0.1"]
    return [*command, "--secure-port", str(port)]
