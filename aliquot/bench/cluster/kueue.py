"""Kueue's baseline generator on a live scheduler: 15,000 short pods in 65 s, on one node.

Churn: at any moment pods end, are created, and could be reclaimed. It is run with
`eviction.patience` and without: what is evicted for a claim that could have started a moment later
on what ends anyway has run in vain. The time that counts is that from the first creation to the
last end.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from aliquot.bench import interruption
from aliquot.bench.cluster.binding import until_idle
from aliquot.bench.cluster.cluster import (
    Cluster,
    ServerKind,
    chosen_server,
    create_all,
    create_in_time,
    define,
    fresh_server,
)
from aliquot.bench.cluster.kueue_load import Load, Workload, load, pod_again, priority_classes
from aliquot.bench.cluster.pod_life import PodLife, live
from aliquot.bench.cluster.scheduler_process import aliquot, run_scheduler
from aliquot.bench.envtest import Server
from aliquot.bench.figure import Figure
from aliquot.kube.api import access
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import CUSTOM, NAMESPACES, NODES, PODS, PRIORITY_CLASSES

PATIENCES = ("500ms", "0s")
"""`eviction.patience` of each run: as long as the pods run that would be evicted, the medium ones,
which is what is recommended under churn; and as it is by default."""
_CONNECTIONS = 32
_QUOTAS = CUSTOM["elasticquotas.scheduling.sigs.k8s.io"]
_LONGEST = 900.0
"""Seconds for all to end: ten times the budget, so that a slow run has figures."""
_BUDGETS = {"large": "<= 21", "medium": "<= 80", "small": "<= 209"}
"""Seconds that workloads of each size wait in Kueue, on average, with the same generator."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What to measure."""

    scale: float = 1.0
    """So much of the generator's load: budgets are about all of it."""
    server: ServerKind | None = None
    """Without a choice, kube-apiserver if its binaries are found, else the embedded one."""


def measure(settings: Settings, progress: Callable[[str], None]) -> list[Figure]:
    """Run the generator with patience and without. Whatever ends it also ends all it started."""
    real, server = chosen_server("bench kueue", settings.server)
    wanted = load(settings.scale)
    figures: list[Figure] = []
    with interruption.noted():
        for patience in PATIENCES:
            on = f"eviction.patience {patience}, on {server}"
            progress(f"{len(wanted.workloads):,} workloads, {on}")
            with fresh_server(real) as (made, folder):
                run = interruption.run(_run(made, folder, wanted, patience))
            budgets = settings.scale >= 1 and patience == PATIENCES[0]
            figures += run.figures(on, wanted.limit, budgets)
    return figures


@dataclass(frozen=True, slots=True)
class Run:
    """What was measured."""

    total: float
    """Seconds from the first creation until all workloads have ended well."""
    waits: dict[str, list[float]]
    """By size: seconds from a workload's creation until it was bound to stay until its end."""
    evictions: int
    lost: float
    """Cpu-seconds that evicted pods had run in vain."""
    cpu: float
    """Seconds of the scheduler's processor time."""
    server_cpu: float
    """The same of the API server and its store."""

    def figures(self, on: str, limit: float, budgets: bool) -> Iterator[Figure]:
        """The figures to print."""

        def budget(bound: str) -> str:
            return bound if budgets else ""

        count = sum(len(each) for each in self.waits.values())
        yield Figure("until all have ended", self.total, "s", budget("<= 95"), on)
        yield Figure("physical limit: no cpu ever idle", limit, "s", on=on)
        yield Figure("evictions", self.evictions, "", budget("<= 150"), on)
        yield Figure("run in vain by evicted pods", self.lost, "cpu s", on=on)
        spent = self.cpu / count * 1e3
        yield Figure("CPU of the scheduler, a workload", spent, "ms", budget("<= 2"), on)
        server = self.server_cpu / count * 1e3
        yield Figure("CPU of API server and store, a workload", server, "ms", on=on)
        for size, bound in _BUDGETS.items():
            yield Figure(f"mean wait, {size}", mean(self.waits[size]), "s", budget(bound), on)


async def _run(server: Server, folder: Path, wanted: Load, patience: str) -> Run:
    find = access.find(server.kubeconfig)
    by_name = {each.pod["metadata"]["name"]: each for each in wanted.workloads}

    def again(_: str, name: str) -> dict[str, object] | None:
        return pod_again(_workload(by_name, name).pod, name)

    async with (
        Client(find, connections=_CONNECTIONS) as client,
        Client(find, connections=_CONNECTIONS) as kubelets,
    ):
        await define(client)
        await create_all(client, NAMESPACES, wanted.namespaces())
        await create_all(client, PRIORITY_CLASSES, priority_classes())
        await create_all(client, NODES, [wanted.node])
        await create_all(client, _QUOTAS, wanted.quotas)
        cluster = Cluster(server, folder, client, 1)
        config = folder / "configuration.yaml"
        config.write_text(_configuration(patience))
        process = aliquot("--no-leader-election", "--config", str(config))
        seconds = {name: each.seconds for name, each in by_name.items()}
        async with (
            live(kubelets, again, lambda name: seconds[name.partition(".")[0]]) as life,
            run_scheduler(process, cluster) as scheduler,
        ):
            await scheduler.until_ready()
            await until_idle(scheduler.child)
            cpu, server_cpu = scheduler.child.usage().cpu, cluster.cpu()
            began = time.perf_counter()
            work = ((began + each.at, each.pod) for each in wanted.workloads)
            times = await create_in_time(client, PODS, work)
            await scheduler.until(lambda: life.ended_well >= len(by_name), _LONGEST)
            total = time.perf_counter() - began
            await until_idle(scheduler.child)
            return _read(
                *(life, by_name, {name: sent for name, (sent, _) in times.items()}, total),
                *(scheduler.child.usage().cpu - cpu, cluster.cpu() - server_cpu),
            )


def _workload(by_name: dict[str, Workload], pod: str) -> Workload:
    """The workload that a pod is of, the first or one in its place."""
    return by_name[pod.partition(".")[0]]


def _read(
    life: PodLife,
    by_name: dict[str, Workload],
    created: dict[str, float],
    total: float,
    cpu: float,
    server_cpu: float,
) -> Run:
    waits, evictions, lost = defaultdict[str, list[float]](list), 0, 0.0
    for name, each in life.pods.items():
        workload = _workload(by_name, name)
        if each.bound is None:
            continue
        if each.ended is not None:
            waits[workload.size].append(
                max(each.bound - created[workload.pod["metadata"]["name"]], 0)
            )
        elif each.ending is not None:
            evictions += 1
            lost += workload.cpu * (each.ending - each.bound)
    return Run(total, dict(waits), evictions, lost, cpu, server_cpu)


def _configuration(patience: str) -> str:
    kind = "apiVersion: config.aliquot.dev/v1alpha1\nkind: Configuration\n"
    return f"{kind}eviction: {{patience: {patience}}}\n"
