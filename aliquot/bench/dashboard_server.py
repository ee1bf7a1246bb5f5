"""The page of a large cluster as a process of its own, so that its processor time can be told.

There is no API server: what a watch would tell is applied to the engine here, one change at a
signal, or some a second from another signal on. A change ends a pod and starts one in its place.
"""

import asyncio
import signal
import time
from collections.abc import Iterator
from dataclasses import replace

from aliquot.bench.engine import flat_cluster
from aliquot.collector import tune_collector
from aliquot.dashboard.app import Answer, Dashboard
from aliquot.dashboard.board import Board
from aliquot.dashboard.watched import Watched
from aliquot.engine import Bind, Engine, Event, Pod, PodGone, PodSet

NODES, PODS, QUOTAS = 5_000, 50_000, 1_000
RATE = 20
"""Changes a second: a cluster of 50,000 pods that run for 40 minutes."""
ONE_CHANGE, STEADY_CHANGES = signal.SIGUSR1, signal.SIGUSR2


class LargeCluster:
    """A cluster of that size, on which almost all pods run."""

    notice = ""

    def __init__(self, nodes: int = NODES, pods: int = PODS, quotas: int = QUOTAS) -> None:
        events = flat_cluster(nodes, pods, quotas)
        engine = Engine("capacity")
        board = Board(f"{nodes} nodes", "capacity")
        self.watched: Watched | None = Watched(engine, board)
        self._watched = self.watched
        for event in events:
            self._apply(event)
        binds = [each for each in engine.cycle(self.clock()) if isinstance(each, Bind)]
        self._running = [replace(each.pod, node=each.node) for each in binds]
        for pod in self._running:
            self._apply(PodSet(pod))
        self._watched.live = True
        self._made = 0

    def clock(self) -> int:
        """The time, in nanoseconds."""
        return time.time_ns()

    def change(self) -> None:
        """End a pod; another one waits, and starts in its place."""
        self._made += 1
        place = self._made * 7 % len(self._running)
        ended = self._running[place]
        started = replace(ended, uid=f"new-{self._made}", name=f"new-{self._made}", node=None)
        for event in _turn(ended, started):
            self._apply(event)
        self._running[place] = replace(started, node=ended.node)

    def _apply(self, event: Event) -> None:
        self._watched.engine.apply(event)
        self._watched.apply(event, self.clock())


def _turn(ended: Pod, started: Pod) -> Iterator[Event]:
    yield PodGone(ended.uid)
    yield PodSet(started)
    yield PodSet(replace(started, node=ended.node))


class _NoOracle:
    """Answers nothing: questions are measured elsewhere."""

    async def explain(self, pod: str) -> Answer:
        return {}

    async def what_if(self, change: Answer) -> Answer:
        return {}


async def _serve() -> None:
    cluster, steady = LargeCluster(), asyncio.Event()
    tune_collector()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(ONE_CHANGE, lambda: _change_once(cluster))
    loop.add_signal_handler(STEADY_CHANGES, steady.set)
    async with Dashboard(cluster, _NoOracle(), "127.0.0.1").serving(0) as port:
        print(f"port {port}", flush=True)
        await steady.wait()
        while True:
            cluster.change()
            await asyncio.sleep(1 / RATE)


def _change_once(cluster: LargeCluster) -> None:
    cluster.change()
    print(f"changed {time.time()}", flush=True)


def main() -> None:
    """Serve until killed."""
    asyncio.run(_serve())


if __name__ == "__main__":
    main()
