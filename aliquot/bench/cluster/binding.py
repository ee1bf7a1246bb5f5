"""How fast pods are bound: while they are created, and when all exist before the scheduler starts.

All times are of one clock, that of the bind observer: from the response to a pod's creation to the
watch event that shows it bound. What a scheduler uses is counted until it is idle again, so that
events it writes later are included.
"""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import quantiles

from aliquot.bench.cluster import load
from aliquot.bench.cluster.bind_observer import BindObserver, observe_binds
from aliquot.bench.cluster.cluster import Cluster
from aliquot.bench.cluster.scheduler_process import SchedulerProcess, run_scheduler
from aliquot.bench.figure import Figure
from aliquot.bench.process import Child
from aliquot.errors import ProcessError

_PATIENCE = 600.0
"""Seconds for all pods to be bound: 10,000 of them at 17 pods/s."""
_SLOW_SECONDS = 60.0
"""How long to watch a scheduler whose client is rate-limited on purpose."""
_PAUSE, _IDLE = 1.0, 0.03
"""Idle: less than 3% of a core for a second, since watches and probes always use some."""
_MOST_IDLING = 120.0
"""Seconds to wait for that; then it is measured as it is."""


@dataclass(frozen=True, slots=True)
class Stream:
    """The figures of pods that are created and bound at the same time."""

    created: float
    """Pods a second."""
    bound: float
    """Pods a second, from the first creation to the last pod seen bound."""
    median: float
    """Seconds from created to bound."""
    p99: float
    cpu: float
    """Seconds of the scheduler's processor time a pod."""
    server_cpu: float
    """The same of the API server and its store."""
    peak: float
    """MiB, of the scheduler."""

    def figures(self, on: str) -> Iterator[Figure]:
        """The figures to print."""
        yield Figure("created meanwhile", self.created, "pods/s", on=on)
        yield Figure("bound as they come", self.bound, "pods/s", on=on)
        yield Figure("from created to bound, median", self.median * 1e3, "ms", on=on)
        yield Figure("from created to bound, p99", self.p99 * 1e3, "ms", on=on)
        yield Figure("CPU of the scheduler, a pod", self.cpu * 1e3, "ms", on=on)
        yield Figure("CPU of API server and store, a pod", self.server_cpu * 1e3, "ms", on=on)
        yield Figure("most memory of the scheduler", self.peak, "MiB", on=on)


@dataclass(frozen=True, slots=True)
class Backlog:
    """The figures of pods that existed before the scheduler started."""

    bound: float
    """Pods a second, from the first pod seen bound to the last."""
    cores: float
    """Cores that the scheduler used meanwhile."""
    server_cores: float
    """The same of the API server and its store."""
    other_cores: float
    """The same of all other processes on the machine, which disturb the measurement."""

    def figures(self, on: str) -> Iterator[Figure]:
        """The figures to print."""
        yield Figure("bound, created before", self.bound, "pods/s", on=on)
        yield Figure("cores busy with the scheduler", self.cores, "", on=on)
        yield Figure("cores busy with API server and store", self.server_cores, "", on=on)
        yield Figure("cores busy with anything else", self.other_cores, "", on=on)


async def stream(cluster: Cluster, process: SchedulerProcess, count: int) -> Stream:
    """Create pods for a scheduler that is ready, and measure how they are bound."""
    async with (
        observe_binds(cluster.client) as observer,
        run_scheduler(process, cluster) as scheduler,
    ):
        await scheduler.until_ready()
        await cluster.create(load.pods(1, process.scheduler_name, first=count))
        await all_bound(observer, 1, scheduler.child)
        await until_idle(scheduler.child)
        before, server_before = scheduler.child.usage(), cluster.cpu()
        acknowledged: dict[str, float] = {}
        creating = asyncio.create_task(
            cluster.create(load.pods(count, process.scheduler_name), acknowledged)
        )
        began = time.perf_counter()
        await all_bound(observer, count + 1, scheduler.child)
        took = await creating
        waits = [max(observer.bound[name] - at, 0.0) for name, at in acknowledged.items()]
        last = max(observer.bound.values())
        await until_idle(scheduler.child)
        after = scheduler.child.usage()
        cuts = quantiles(waits, n=100, method="inclusive")
        return Stream(
            created=count / took,
            bound=count / (last - began),
            median=cuts[49],
            p99=cuts[98],
            cpu=(after.cpu - before.cpu) / count,
            server_cpu=(cluster.cpu() - server_before) / count,
            peak=after.peak,
        )


async def backlog(cluster: Cluster, process: SchedulerProcess, count: int) -> Backlog:
    """Create pods, then start a scheduler, and measure how fast it binds them."""
    await cluster.create(load.pods(count, process.scheduler_name))
    async with (
        observe_binds(cluster.client) as observer,
        run_scheduler(process, cluster) as scheduler,
    ):
        await all_bound(observer, 1, scheduler.child)
        before, server_before = scheduler.child.usage(), cluster.cpu()
        others_before = cluster.cpu_of_others(scheduler.child)
        if process.slow:
            await observer.until(count, _SLOW_SECONDS)
        else:
            await all_bound(observer, count, scheduler.child)
        times = observer.bound.values()
        span = max(times) - min(times)
        return Backlog(
            bound=(len(times) - 1) / span,
            cores=(scheduler.child.usage().cpu - before.cpu) / span,
            server_cores=(cluster.cpu() - server_before) / span,
            other_cores=(cluster.cpu_of_others(scheduler.child) - others_before) / span,
        )


async def all_bound(observer: BindObserver, count: int, scheduler: Child) -> None:
    """Wait until so many pods are bound; fail if the scheduler ends or takes too long."""
    for _ in range(int(_PATIENCE)):
        if await observer.until(count, 1.0):
            return
        scheduler.check()
    words = f"bound {len(observer.bound)} of {count} pods in {_PATIENCE:.0f} s: {scheduler.said()}"
    raise ProcessError(f"the scheduler {words}")


async def until_idle(scheduler: Child) -> None:
    """Wait until a scheduler is idle."""
    for _ in range(int(_MOST_IDLING / _PAUSE)):
        before = scheduler.usage().cpu
        await asyncio.sleep(_PAUSE)
        if scheduler.usage().cpu - before < _IDLE * _PAUSE:
            return
