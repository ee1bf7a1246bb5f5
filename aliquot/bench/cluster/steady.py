"""Steady arrivals: how long a pod waits from its creation until it is bound, far from any limit.

Pods are created one by one at an even pace. All schedulers that are compared run on one cluster,
one after the other in several rounds, so that they meet the same server with the same objects; of
each, the best round counts, since whatever else the machine does only adds to waits.
"""

import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from statistics import quantiles

from aliquot.bench.cluster import load
from aliquot.bench.cluster.bind_observer import observe_binds
from aliquot.bench.cluster.binding import all_bound, until_idle
from aliquot.bench.cluster.cluster import Cluster, create_in_time
from aliquot.bench.cluster.scheduler_process import SchedulerProcess, run_scheduler
from aliquot.bench.figure import Figure
from aliquot.kube.api.resource import PODS

RATES = (50, 200, 300)
"""Pods a second: a busy cluster, and what kube-scheduler binds on two cores with its client's rate
limit raised."""
SECONDS = 10
"""At each rate: 500 pods at least, of which five are slower than the p99."""
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Waits:
    """The waits of one scheduler at one rate, and its processor time, in seconds."""

    median: float
    p99: float
    cpu: float
    """For a pod."""

    def best(self, other: "Waits") -> "Waits":
        """The better figure of each kind."""
        return Waits(
            *(min(self.median, other.median), min(self.p99, other.p99), min(self.cpu, other.cpu))
        )


Found = dict[tuple[str, int], Waits]
"""By the title of a scheduler and the rate."""


async def steady(
    cluster: Cluster,
    processes: list[SchedulerProcess],
    running: int,
    say: Callable[[str], None],
    rates: tuple[int, ...] = RATES,
    seconds: int = SECONDS,
    rounds: int = _ROUNDS,
) -> Found:
    """The waits of all schedulers at all rates, beside so many pods that run."""
    await cluster.run(load.pods(running, processes[0].scheduler_name))
    found: Found = {}
    first = running
    for turn in range(rounds):
        for process in processes:
            say(f"{process.title}, round {turn + 1} of {rounds}")
            async for rate, waits in _measure(cluster, process, first, rates, seconds):
                key = process.title, rate
                found[key] = waits.best(found.get(key, waits))
            first += 1 + sum(rate * seconds for rate in rates)
    return found


async def _measure(
    cluster: Cluster, process: SchedulerProcess, first: int, rates: tuple[int, ...], seconds: int
) -> AsyncIterator[tuple[int, Waits]]:
    """One round of one scheduler; its pods are numbered from `first`."""
    name = process.scheduler_name
    async with (
        observe_binds(cluster.client) as observer,
        run_scheduler(process, cluster) as scheduler,
    ):
        await scheduler.until_ready()
        before = len(observer.bound)
        await cluster.create(load.pods(1, name, first=first))
        await all_bound(observer, before + 1, scheduler.child)
        await until_idle(scheduler.child)
        first += 1
        for rate in rates:
            count, cpu = rate * seconds, scheduler.child.usage().cpu
            began, before = time.perf_counter(), len(observer.bound)
            pods = load.pods(count, name, first=first)
            work = ((began + number / rate, pod) for number, pod in enumerate(pods))
            times = await create_in_time(cluster.client, PODS, work)
            await all_bound(observer, before + count, scheduler.child)
            await until_idle(scheduler.child)
            waits = [max(observer.bound[pod] - answer, 0.0) for pod, (_, answer) in times.items()]
            cuts = quantiles(waits, n=100, method="inclusive")
            yield rate, Waits(cuts[49], cuts[98], (scheduler.child.usage().cpu - cpu) / count)
            first += count


def figures(found: Found, on: str) -> Iterator[Figure]:
    """The figures to print: of each scheduler, and of the first beside the others."""
    titles = list(dict.fromkeys(title for title, _ in found))
    for title, rate in found:
        waits, where = found[title, rate], f"{on}, {title}"
        yield Figure(f"{rate} pods/s: created to bound, median", waits.median * 1e3, "ms", on=where)
        yield Figure(f"{rate} pods/s: created to bound, p99", waits.p99 * 1e3, "ms", on=where)
        yield Figure(f"{rate} pods/s: CPU of the scheduler, a pod", waits.cpu * 1e3, "ms", on=where)
    ours, *others = titles
    for other in others:
        where = f"{on}, {ours} beside {other}"
        for rate in dict.fromkeys(rate for _, rate in found):
            own, theirs = found[ours, rate], found[other, rate]
            median, p99 = own.median / theirs.median, own.p99 / theirs.p99
            yield Figure(f"{rate} pods/s: median", median, "x", "<= 1", where)
            yield Figure(f"{rate} pods/s: p99", p99, "x", "<= 1", where)
