"""How long no scheduler leads after the leader is killed, or asked to end.

Pods are created all the time. Measured is the first pod that was created after the signal and is
seen bound: only the follower can have bound it.
"""

import asyncio
import signal
import time
from itertools import count

from aliquot.bench.cluster import load
from aliquot.bench.cluster.bind_observer import observe_binds
from aliquot.bench.cluster.cluster import Cluster
from aliquot.bench.cluster.scheduler_process import aliquot, run_scheduler
from aliquot.bench.figure import Figure
from aliquot.errors import ProcessError

_PATIENCE = 120.0
"""Seconds: several times the duration of a lease."""
_PODS_A_SECOND = 20
"""The precision is 50 ms; all pods of a takeover fit on the nodes."""
_WAYS = {signal.SIGKILL: "killed", signal.SIGTERM: "asked to end"}


async def take_over(cluster: Cluster, how: signal.Signals) -> Figure:
    """Run two schedulers, end the leader, and wait for the other to bind a pod."""
    process, after = aliquot(), set[str]()
    ended = False
    async with (
        observe_binds(cluster.client) as seen,
        run_scheduler(process, cluster, "leader") as leader,
    ):
        await leader.until_ready()

        async def create_pods() -> None:
            """Create pods, one after the other."""
            for number in count():
                (pod,) = load.pods(1, process.scheduler_name, first=number)
                after_end = ended
                await cluster.create([pod])
                if after_end:
                    after.add(pod["metadata"]["name"])
                await asyncio.sleep(1 / _PODS_A_SECOND)

        creating = asyncio.create_task(create_pods())
        try:
            if not await seen.until(1, _PATIENCE):
                raise ProcessError(f"nothing was bound in {_PATIENCE:.0f} s: {leader.child.said()}")
            async with run_scheduler(process, cluster, "follower") as follower:
                await follower.until_ready()
                ended, ended_at = True, time.perf_counter()
                leader.child.process.send_signal(how)
                found = await seen.until_any(after, _PATIENCE)
                said = follower.child.said()
        finally:
            creating.cancel()
    if found is None:
        raise ProcessError(f"nobody took over in {_PATIENCE:.0f} s: {said}")
    on = f"{cluster.nodes:,} nodes, two schedulers"
    return Figure(f"until a pod is bound, leader {_WAYS[how]}", found - ended_at, "s", on=on)
