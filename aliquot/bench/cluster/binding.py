"""How fast pods are bound: as they come, and when all have come before the scheduler does.

Times are those of one clock, that of the witness: from when the server has acknowledged a pod to
when the watch shows it bound. What a scheduler uses is counted until it has nothing left to write,
events included.
"""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import quantiles

from aliquot.bench.cluster import load
from aliquot.bench.cluster.bind_observer import BindObserver, witness
from aliquot.bench.cluster.cluster import Cluster
from aliquot.bench.cluster.scheduler_process import SchedulerProcess, started
from aliquot.bench.figure import Figure
from aliquot.bench.process import Child
from aliquot.errors import ProcessError

_PATIENCE = 600.0
_SLOW_SECONDS = 60.0
"""How long to watch one that is held back on purpose."""
_PAUSE, _CALM = 1.0, 0.03
_MOST_CALMING = 120.0


@dataclass(frozen=True, slots=True)
class Stream:
    """What was seen while pods were created and bound at the same time."""

    created: float
    """Pods a second."""
    bound: float
    """Pods a second, from the first that was sent to the last that was seen bound."""
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
        """As they are shown."""
        yield Figure("created meanwhile", self.created, "pods/s", on=on)
        yield Figure("bound as they come", self.bound, "pods/s", on=on)
        yield Figure("from created to bound, median", self.median * 1e3, "ms", on=on)
        yield Figure("from created to bound, p99", self.p99 * 1e3, "ms", on=on)
        yield Figure("CPU of the scheduler, a pod", self.cpu * 1e3, "ms", on=on)
        yield Figure("CPU of API server and store, a pod", self.server_cpu * 1e3, "ms", on=on)
        yield Figure("most memory of the scheduler", self.peak, "MiB", on=on)


@dataclass(frozen=True, slots=True)
class Backlog:
    """What was seen when all pods were there before the scheduler."""

    bound: float
    """Pods a second, from the first that was seen bound to the last."""
    cores: float
    """Cores that the scheduler kept busy meanwhile."""
    server_cores: float
    """The same of the API server and its store."""
    other_cores: float
    """The same of everybody else on the machine: what they took away from the measurement."""

    def figures(self, on: str) -> Iterator[Figure]:
        """As they are shown."""
        yield Figure("bound, created before", self.bound, "pods/s", on=on)
        yield Figure("cores busy with the scheduler", self.cores, "", on=on)
        yield Figure("cores busy with API server and store", self.server_cores, "", on=on)
        yield Figure("cores busy with anything else", self.other_cores, "", on=on)


async def stream(cluster: Cluster, contender: SchedulerProcess, count: int) -> Stream:
    """Create pods for a scheduler that is ready, and see them bound."""
    async with witness(cluster.client) as seen, started(contender, cluster) as scheduler:
        await scheduler.until_ready()
        await cluster.create(load.pods(1, contender.scheduler_name, first=count))
        await _all_bound(seen, 1, scheduler.child)
        await _calm(scheduler.child)
        before, server_before = scheduler.child.usage(), cluster.cpu()
        acknowledged: dict[str, float] = {}
        creating = asyncio.create_task(
            cluster.create(load.pods(count, contender.scheduler_name), acknowledged)
        )
        began = time.perf_counter()
        await _all_bound(seen, count + 1, scheduler.child)
        took = await creating
        waits = [max(seen.bound[name] - at, 0.0) for name, at in acknowledged.items()]
        last = max(seen.bound.values())
        await _calm(scheduler.child)
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


async def backlog(cluster: Cluster, contender: SchedulerProcess, count: int) -> Backlog:
    """Create pods, then start a scheduler, and see how fast it works them off."""
    await cluster.create(load.pods(count, contender.scheduler_name))
    async with witness(cluster.client) as seen, started(contender, cluster) as scheduler:
        await _all_bound(seen, 1, scheduler.child)
        before, server_before = scheduler.child.usage(), cluster.cpu()
        others_before = cluster.cpu_of_others(scheduler.child)
        if contender.slow:
            await seen.until(count, _SLOW_SECONDS)
        else:
            await _all_bound(seen, count, scheduler.child)
        times = seen.bound.values()
        span = max(times) - min(times)
        return Backlog(
            bound=(len(times) - 1) / span,
            cores=(scheduler.child.usage().cpu - before.cpu) / span,
            server_cores=(cluster.cpu() - server_before) / span,
            other_cores=(cluster.cpu_of_others(scheduler.child) - others_before) / span,
        )


async def _all_bound(seen: BindObserver, count: int, scheduler: Child) -> None:
    """Wait for the last pod; fail if the scheduler does, or does not get there."""
    for _ in range(int(_PATIENCE)):
        if await seen.until(count, 1.0):
            return
        scheduler.check()
    words = f"bound {len(seen.bound)} of {count} pods in {_PATIENCE:.0f} s: {scheduler.said()}"
    raise ProcessError(f"the scheduler {words}")


async def _calm(scheduler: Child) -> None:
    """Wait until a scheduler has nothing to do any more."""
    for _ in range(int(_MOST_CALMING / _PAUSE)):
        before = scheduler.usage().cpu
        await asyncio.sleep(_PAUSE)
        if scheduler.usage().cpu - before < _CALM * _PAUSE:
            return
