"""How long a scheduler takes to start on a large cluster, and how much memory it needs.

It is ready when everything is listed, decoded and indexed. After that it builds its state and binds
a pod that was pending: the time to that first bind is measured, too.
"""

import asyncio
import time

from aliquot.bench.cluster import load
from aliquot.bench.cluster.cluster import Cluster
from aliquot.bench.cluster.scheduler_process import (
    RunningScheduler,
    run_scheduler,
    without_election,
)
from aliquot.bench.figure import Figure
from aliquot.errors import ProcessError
from aliquot.json import Body
from aliquot.kube.api.resource import PODS

_NODES, _PODS = 5_000, 50_000
"""The sizes that the budget holds for."""
_PATIENCE = 300.0
"""Seconds for the first bind: far above the budget, for slow machines."""
_LOOK = 0.02
"""Seconds between two looks: the precision of the time to the first bind."""


async def start(cluster: Cluster, count: int) -> list[Figure]:
    """Start a scheduler on a cluster with so many running pods."""
    await cluster.run(load.pods(count, without_election().scheduler_name))
    (pod,) = load.pods(1, without_election().scheduler_name, first=count)
    await cluster.create([pod])
    async with run_scheduler(without_election(), cluster) as scheduler:
        took = await scheduler.until_ready()
        used = scheduler.child.usage()
        await _until_bound(cluster, pod, scheduler)
        at_work, then = time.perf_counter() - scheduler.began, scheduler.child.usage()
    on = f"{cluster.nodes:,} nodes, {count:,} pods that run, aliquot"
    full = cluster.nodes >= _NODES and count >= _PODS
    return [
        Figure("from its start to ready", took, "s", "<= 5" if full else "", on),
        Figure("CPU until ready", used.cpu, "s", on=on),
        Figure("memory when ready", used.resident, "MiB", "<= 250" if full else "", on),
        Figure("from its start to the first pod bound", at_work, "s", on=on),
        Figure("CPU until the first pod is bound", then.cpu, "s", on=on),
        Figure("most memory until then", then.peak, "MiB", "<= 700" if full else "", on),
    ]


async def _until_bound(cluster: Cluster, pod: Body, scheduler: RunningScheduler) -> None:
    where = PODS.path(pod["metadata"]["namespace"], pod["metadata"]["name"])
    end = time.perf_counter() + _PATIENCE
    while not (await cluster.client.get(where))["spec"].get("nodeName"):
        scheduler.child.check()
        if time.perf_counter() > end:
            words = f"bound nothing in {_PATIENCE:.0f} s: {scheduler.child.said()}"
            raise ProcessError(f"the scheduler {words}")
        await asyncio.sleep(_LOOK)
