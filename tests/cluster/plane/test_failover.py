"""Replicas that are killed and stopped while pods come: one takes over, and never do two decide.

An independent watcher adds up what is held at every change; every pod is bound once, and a replica
that slept through the end of its Lease writes nothing when it wakes.
"""

import asyncio
import math
import random
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

from tests.build.manifests import limited_pod, quota
from tests.campaign import length
from tests.cluster.plane.books import Body
from tests.cluster.plane.cluster import Cluster
from tests.cluster.plane.ground import Ground, ground
from tests.cluster.plane.leader import TIMING
from tests.cluster.plane.replicas import replicas
from tests.cluster.plane.worlds import node

_KILLS = length(2, 30)
_PATIENCE = 60.0
_LIVES = 0.2
_PACE = 0.1
_MOST = 40
"""More pods than this do not wait: ten times what the quota lets run at once."""


def test_leaders_that_are_killed_while_pods_come(cluster: Cluster, tmp_path: Path) -> None:
    async def story() -> None:
        dice = random.Random(9)
        with replicas(cluster.server.kubeconfig, tmp_path) as made:
            made.start()
            leader = await made.leader()
            async with _busy(cluster):
                for _ in range(_KILLS):
                    made.start()
                    await asyncio.sleep(dice.uniform(0.7, 1.5))
                    made.kill(leader)
                    killed = time.time()
                    leader = await made.leader()
                    print(f"taken over after {leader.told('leads')[-1] - killed:.2f} s")

    asyncio.run(story())


def test_a_leader_that_sleeps_beyond_its_lease_writes_nothing_when_it_wakes(
    cluster: Cluster, tmp_path: Path
) -> None:
    async def story() -> None:
        with replicas(cluster.server.kubeconfig, tmp_path) as made:
            made.start()
            leader = await made.leader()
            made.start()
            async with _busy(cluster):
                await asyncio.sleep(1.0)
                leader.send(signal.SIGSTOP)
                other = await made.leader(but=leader)
                woken = time.time()
                leader.send(signal.SIGCONT)
                await asyncio.sleep(TIMING.duration)
            again = min(leader.told("leads", since=woken), default=math.inf)
            assert [each for each in leader.told("writes", since=woken) if each < again] == []
            assert other.told("writes", since=woken)

    asyncio.run(story())


@asynccontextmanager
async def _busy(cluster: Cluster) -> AsyncIterator[Ground]:
    """Pods come all the time, run for a moment, and go; in the end all have run."""
    async with ground(cluster.server.kubeconfig) as made:
        await made.lay(
            (node("n-1", cpu=4), node("n-2", cpu=4), quota("team/team", {"cpu": 4}, {"cpu": 6}))
        )
        over = asyncio.Event()
        traffic = asyncio.create_task(_traffic(made, over))
        try:
            yield made
            over.set()
            await _served(made, traffic)
        finally:
            traffic.cancel()
        assert made.books.wrong == []
        await made.clear()


async def _served(made: Ground, traffic: asyncio.Task[None]) -> None:
    """Wait until all pods have had their turn; fail if for a while none has."""
    served = -1
    while not traffic.done():
        assert served < len(made.books.nodes), made.waiting()
        served = len(made.books.nodes)
        await asyncio.wait((traffic,), timeout=_PATIENCE)
    await traffic


async def _traffic(made: Ground, over: asyncio.Event) -> None:
    """Send pods until it is over, and wait until all of them have had their turn."""
    dice, places = random.Random(8), asyncio.Semaphore(_MOST)
    async with asyncio.TaskGroup() as group:
        for number in count():
            await places.acquire()
            body = await made.make(limited_pod(f"team/p-{number}", {"cpu": dice.choice((1, 1, 2))}))
            task = group.create_task(_run(made, body))
            task.add_done_callback(lambda _: places.release())
            await asyncio.sleep(_PACE)
            if over.is_set():
                return


async def _run(made: Ground, body: Body) -> None:
    """Let a pod run for a moment once it is bound."""
    while body["metadata"]["uid"] not in made.books.nodes:
        await asyncio.sleep(_PACE)
    await asyncio.sleep(_LIVES)
    await made.end(body)
