"""How long nobody schedules when the leader goes: killed at once, or asked to end.

Pods keep coming meanwhile. What counts is the first one that was created after the leader went and
is seen bound: only the other scheduler can have done that.
"""

import asyncio
import signal
import time
from itertools import count

from aliquot.bench.cluster import load
from aliquot.bench.cluster.bind_observer import witness
from aliquot.bench.cluster.cluster import Cluster
from aliquot.bench.cluster.scheduler_process import aliquot, started
from aliquot.bench.figure import Figure
from aliquot.errors import ProcessError

_PATIENCE = 120.0
_PODS_A_SECOND = 20
_WAYS = {signal.SIGKILL: "killed", signal.SIGTERM: "asked to end"}


async def take_over(cluster: Cluster, how: signal.Signals) -> Figure:
    """Have two schedulers run, end the one that leads, and wait for the other to bind a pod."""
    contender, after = aliquot(), set[str]()
    gone = False
    async with witness(cluster.client) as seen, started(contender, cluster, "leader") as leader:
        await leader.until_ready()

        async def come() -> None:
            """Pods, one after the other; so few that they fit whatever happens."""
            for number in count():
                (pod,) = load.pods(1, contender.scheduler_name, first=number)
                sent_after = gone
                await cluster.create([pod])
                if sent_after:
                    after.add(pod["metadata"]["name"])
                await asyncio.sleep(1 / _PODS_A_SECOND)

        coming = asyncio.create_task(come())
        try:
            if not await seen.until(1, _PATIENCE):
                raise ProcessError(f"nothing was bound in {_PATIENCE:.0f} s: {leader.child.said()}")
            async with started(contender, cluster, "follower") as follower:
                await follower.until_ready()
                gone, went = True, time.perf_counter()
                leader.child.process.send_signal(how)
                found = await seen.until_any(after, _PATIENCE)
                said = follower.child.said()
        finally:
            coming.cancel()
    if found is None:
        raise ProcessError(f"nobody took over in {_PATIENCE:.0f} s: {said}")
    on = f"{cluster.nodes:,} nodes, two schedulers"
    return Figure(f"until a pod is bound, leader {_WAYS[how]}", found - went, "s", on=on)
