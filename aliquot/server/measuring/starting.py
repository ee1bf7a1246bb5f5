"""How long a scheduler takes to know a large cluster, and how much memory that takes."""

from aliquot.cluster.figure import Figure
from aliquot.server.measuring import load
from aliquot.server.measuring.cluster import Cluster
from aliquot.server.measuring.contender import alone, started

_NODES, _PODS = 5_000, 50_000
"""What the budget is about."""


async def start(cluster: Cluster, count: int) -> list[Figure]:
    """Start a scheduler on a cluster in which so many pods run."""
    await cluster.run(load.pods(count, alone().scheduler_name))
    async with started(alone(), cluster) as scheduler:
        took = await scheduler.until_ready()
        used = scheduler.child.usage()
    on = f"{cluster.nodes:,} nodes, {count:,} pods that run, aliquot"
    full = cluster.nodes >= _NODES and count >= _PODS
    return [
        Figure("from its start to ready", took, "s", "<= 5" if full else "", on),
        Figure("CPU until then", used.cpu, "s", on=on),
        Figure("memory then", used.resident, "MiB", "<= 700" if full else "", on),
        Figure("most memory until then", used.peak, "MiB", on=on),
    ]
