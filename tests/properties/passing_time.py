"""A small cluster in which time passes: pods arrive, start, run for as long as they do, and end.

The engine decides at every moment at which something happens, or that it has asked for. An evicted
pod is gone at once, and is not replaced. Seconds everywhere.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from aliquot.engine import Engine, Pod
from aliquot.engine.model.decisions import Bind, binds_and_evictions
from aliquot.engine.model.events import Event, GangSet, NodeSet, PodGone, PodSet, QuotaSet
from aliquot.engine.model.knobs import SECOND, Knobs
from aliquot.engine.model.quantity import Amounts
from tests.build import values
from tests.build.engines import books
from tests.build.values import GPU
from tests.engine.world import World

MOST_ROUNDS = 60
"""Far more cycles than a dozen claims can need to come to rest at one moment."""


@dataclass(frozen=True)
class Arrival:
    """A pod that comes at this second, and how long it runs: really, and as it says."""

    at: int
    pod: Pod
    lasts: int | None = None


def arrival(
    at: int, team: str, name: str, asks: int | Amounts, lasts: int | None = None, **more: Any
) -> Arrival:
    """A pod of a team; `says` is the duration that it states, `lasts` unless told."""
    says = more.pop("says", lasts)
    known = None if says is None else says * SECOND
    made = values.pod(
        name,
        asks,
        team,
        uid=f"{team}/{name}",
        created=at * SECOND,
        expected_duration=known,
        **more,
    )
    return Arrival(at, made, lasts)


class Clockwork(World):
    """A world whose clock goes on from one moment to the next."""

    def __init__(self, policy: str, **knobs: Any) -> None:
        super().__init__(policy, **knobs)
        self._knobs = knobs
        self._facts: dict[object, Event] = {}
        self._coming: list[tuple[int, int, Arrival, Iterator[Arrival]]] = []
        self._numbers = count()
        self._lasts: dict[str, int | None] = {}
        self._ends: list[tuple[int, str]] = []
        self.pods: dict[str, Pod] = {}
        """All pods that wait or run, by uid."""
        self.started: dict[str, int] = {}
        """When each pod has started, by uid."""

    @property
    def second(self) -> int:
        return self.now // SECOND

    def apply(self, *events: Event) -> None:
        """Tell the engine, and remember what a fresh one would be told."""
        for event in events:
            match event:
                case NodeSet(each) | QuotaSet(each) | GangSet(each):
                    self._facts[type(event), each.name] = event
                case PodSet(pod):
                    self.pods[pod.uid] = pod
                case PodGone(uid):
                    del self.pods[uid]
        super().apply(*events)

    def restart(self) -> None:
        """A fresh engine, which is told what the cluster holds now."""
        self.engine = Engine(self.engine.policy, Knobs(**self._knobs))
        self.state = books(self.engine)
        super().apply(*self._facts.values(), *map(PodSet, self.pods.values()))

    def expect(self, arrivals: Iterable[Arrival]) -> None:
        """These pods will come, in the order of their arrival; there may be no end of them."""
        rest = iter(arrivals)
        first = next(rest, None)
        if first is not None:
            heapq.heappush(self._coming, (first.at, next(self._numbers), first, rest))

    def next_moment(self) -> int | None:
        """When something happens next."""
        moments = [heap[0][0] for heap in (self._coming, self._ends) if heap]
        deadline = self.engine.next_deadline()
        if deadline is not None:
            assert deadline > self.now, "the engine's deadline stands still"
            moments.append(-(-deadline // SECOND))
        return min(moments, default=None)

    def step(self, until: int) -> bool:
        """Go to the next moment, if it is not after `until`, and decide there."""
        at = self.next_moment()
        if at is None or at > until:
            return False
        self.now = at * SECOND
        while self._ends and self._ends[0][0] <= at:
            uid = heapq.heappop(self._ends)[1]
            if uid in self.pods:
                self.apply(PodGone(uid))
        while self._coming and self._coming[0][0] <= at:
            *_, each, rest = heapq.heappop(self._coming)
            self._lasts[each.pod.uid] = each.lasts
            self.apply(PodSet(each.pod))
            self.expect(rest)
        self.decide()
        return True

    def decide(self) -> None:
        """Until there is nothing more to decide now."""
        for _ in range(MOST_ROUNDS):
            decided = list(binds_and_evictions(self.engine.cycle(self.now)))
            if not decided:
                return
            for each in decided:
                if isinstance(each, Bind):
                    self._start(each)
                else:
                    self.evictions.append(each)
                    self.apply(PodGone(each.pod.uid))
        raise AssertionError("it does not come to rest")

    def _start(self, bind: Bind) -> None:
        uid, lasts = bind.pod.uid, self._lasts.get(bind.pod.uid)
        self.started[uid] = self.second
        self.apply(PodSet(replace(bind.pod, node=bind.node, started=self.now)))
        if lasts is not None:
            heapq.heappush(self._ends, (self.second + lasts, uid))

    def running(self) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.node is not None]

    def waiting(self) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.node is None]

    def last_known_end(self) -> int:
        """When the last of the running pods ends at the latest, as they say; now, if none runs."""
        ends = [pod.expected_end for pod in self.running()]
        assert all(end is not None for end in ends)
        return max((int(end or 0) // SECOND for end in ends), default=self.second)

    def free(self) -> dict[str, int]:
        """The GPUs of each node that no pod has."""
        left = {
            event.node.name: dict(event.node.allocatable)[GPU]
            for event in self._facts.values()
            if isinstance(event, NodeSet)
        }
        for pod in self.running():
            left[str(pod.node)] -= gpus(pod)
        return left

    def reserved(self) -> dict[str, list[Pod]]:
        """The pods with reservations, by the claim (its gang, or its uid) they belong to."""
        found: dict[str, list[Pod]] = {}
        for uid in self.state.reserved:
            pod = self.pods[uid]
            found.setdefault(pod.gang or uid, []).append(pod)
        return found


def gpus(pod: Pod) -> int:
    """How many GPUs a pod asks for."""
    return dict(pod.shape.requests).get(GPU, 0)
