"""How long a scheduler takes to know a large cluster, and how much memory that takes.

It is ready when everything has been listed, decoded and indexed. Then it makes its books, and binds
a pod that has been waiting for it: only now it is at work.
"""

import asyncio
import time

from aliquot.bench.cluster import load
from aliquot.bench.cluster.cluster import Cluster
from aliquot.bench.cluster.scheduler_process import Running, alone, started
from aliquot.bench.figure import Figure
from aliquot.errors import ProcessError
from aliquot.json import Body
from aliquot.kube.api.resource import PODS

_NODES, _PODS = 5_000, 50_000
"""What the budget is about."""


_PATIENCE = 300.0
_LOOK = 0.02


async def start(cluster: Cluster, count: int) -> list[Figure]:
    """Start a scheduler on a cluster in which so many pods run."""
    await cluster.run(load.pods(count, alone().scheduler_name))
    (pod,) = load.pods(1, alone().scheduler_name, first=count)
    await cluster.create([pod])
    async with started(alone(), cluster) as scheduler:
        took = await scheduler.until_ready()
        used = scheduler.child.usage()
        await _until_bound(cluster, pod, scheduler)
        at_work, then = time.perf_counter() - scheduler.began, scheduler.child.usage()
    on = f"{cluster.nodes:,} nodes, {count:,} pods that run, aliquot"
    full = cluster.nodes >= _NODES and count >= _PODS
    return [
        Figure("from its start to ready", took, "s", "<= 5" if full else "", on),
        Figure("CPU until ready", used.cpu, "s", on=on),
        Figure("memory when ready", used.resident, "MiB", "<= 700" if full else "", on),
        Figure("from its start to the first pod bound", at_work, "s", on=on),
        Figure("CPU until the first pod is bound", then.cpu, "s", on=on),
        Figure("most memory until then", then.peak, "MiB", "<= 700" if full else "", on),
    ]


async def _until_bound(cluster: Cluster, pod: Body, scheduler: Running) -> None:
    where = PODS.path(pod["metadata"]["namespace"], pod["metadata"]["name"])
    end = time.perf_counter() + _PATIENCE
    while not (await cluster.client.get(where))["spec"].get("nodeName"):
        scheduler.child.check()
        if time.perf_counter() > end:
            words = f"bound nothing in {_PATIENCE:.0f} s: {scheduler.child.said()}"
            raise ProcessError(f"the scheduler {words}")
        await asyncio.sleep(_LOOK)
