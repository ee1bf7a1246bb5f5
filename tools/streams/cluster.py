"""A random cluster that carries out what the engine decides, sooner or later, or not at all.

Before each cycle, `events` says what has happened since the last: pods come and end, binds are
confirmed or fail, victims terminate fast or slowly and are created anew, bounds are lowered, nodes
are lost and return. `take` notes the decisions, `advance` moves the time on. All is drawn from one
`random.Random`: the same decisions lead to the same events.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from random import Random

from aliquot.engine import (
    SECOND,
    Bind,
    BindFailed,
    Decision,
    Event,
    Evict,
    EvictFailed,
    GangSet,
    Pod,
    PodGone,
    PodSet,
)

from .inventory import Change, Inventory
from .objects import Objects
from .profile import Profile, often, random_knobs
from .text import Nomination, flat

TASKS = ("", "m", "w")
_FORTY_MINUTES = 2400 * SECOND
"""Longer than the engine waits for the confirmation of a bind."""


class Cluster:
    """The objects of one cluster, and what is under way in it."""

    def __init__(self, rng: Random, policy: str, big: bool = False) -> None:
        self.rng = rng
        self.policy = policy
        self.make = Objects(Profile(rng, policy, big))
        self.knobs = random_knobs(rng)
        self.there = Inventory(rng, self.make)
        self.now = 0
        self.round = 0
        self.pods: dict[str, Pod] = {}
        self._binds: dict[str, tuple[int, Bind]] = {}
        """Binds that are not carried out yet, and in which round they are."""
        self._ends: dict[str, int] = {}
        """In which round a victim is gone."""
        self._evicted: list[str] = []
        self._nominated: list[Nomination] = []
        self._made = 0
        self._shows_nominations = often(rng, 0.4)
        self._owners = rng.choice((0.0, 0.5, 1.0))
        """The part of the victims that their owners create anew."""
        self._late = rng.choice((0.0, 0.0, 0.2))
        self._slow = rng.choice((0.0, 0.1, 0.4))
        self._fails = rng.choice((0.0, 0.03, 0.1))
        self._pods_left = rng.randint(80, 160) if big else rng.randint(10, 50)
        self._changes: list[tuple[Change, float]] = [
            (self._end_pod, 4),
            (self._change_pod, 2),
            *self.there.changes(),
        ]

    def events(self) -> Iterator[Event]:
        """What has happened since the last cycle; at first, the objects that are there."""
        if self.round == 0:
            yield from self.there.initial()
        yield from self._confirm()
        yield from self._terminate()
        calls, weights = zip(*self._changes, strict=True)
        many = self.rng.choice((0, 0, 0, 1, 1, 2, 3)) if self.round else 0
        for change in self.rng.choices(calls, weights, k=many):
            yield from change()
        if self._pods_left > 0 and often(self.rng, 0.5 if self.round else 0.9):
            yield from self._add_pods()
        self.round += 1

    def take(self, decisions: Iterable[Decision]) -> None:
        """Note what was decided; it is carried out before one of the next cycles."""
        for decision in flat(decisions):
            if isinstance(decision, Bind):
                late = self.rng.randint(1, 6) if often(self.rng, self._late) else 0
                self._binds[decision.pod.uid] = (self.round + late, decision)
            elif isinstance(decision, Evict):
                self._evicted.append(decision.pod.uid)
            elif isinstance(decision, Nomination):
                self._nominated.append(decision)

    def is_binding(self, uid: str) -> bool:
        """Was a bind of this pod decided that is not carried out yet?"""
        return uid in self._binds

    def advance(self, deadline: int | None) -> None:
        """Move the time on: a little, or to the next deadline of the engine."""
        if deadline is not None and deadline > self.now and often(self.rng, 0.4):
            self.now = deadline
        else:
            self.now += self.rng.choice((0, 0, 1, 1, 5, 20, 60, 130)) * SECOND
        if often(self.rng, 0.01):
            self.now += _FORTY_MINUTES

    def _set_pod(self, pod: Pod) -> Event:
        self.pods[pod.uid] = pod
        return PodSet(pod)

    def _confirm(self) -> Iterator[Event]:
        """Binds that are carried out, or fail; nominations that pods show."""
        for uid, (due, bind) in list(self._binds.items()):
            if due > self.round:
                continue
            del self._binds[uid]
            pod = self.pods.get(uid)
            if pod is None:
                continue
            if bind.node not in self.there.nodes or pod.terminating or often(self.rng, self._fails):
                yield BindFailed(uid)
            else:
                bound = replace(pod, node=bind.node, devices=bind.devices, started=self.now)
                yield self._set_pod(replace(bound, nominated=None))
        nominated, self._nominated = self._nominated, []
        for each in nominated if self._shows_nominations else ():
            pod = self.pods.get(each.pod.uid)
            if pod is not None and pod.node is None and pod.uid not in self._binds:
                yield self._set_pod(replace(pod, nominated=each.node))

    def _terminate(self) -> Iterator[Event]:
        """Victims that terminate, are gone, and are created anew; evictions that fail."""
        rng = self.rng
        evicted, self._evicted = self._evicted, []
        for uid in evicted:
            pod = self.pods.get(uid)
            if pod is None:
                continue
            if often(rng, self._fails) and pod.node in self.there.nodes:
                yield EvictFailed(uid)
                continue
            slow = rng.randint(3, 15) if often(rng, self._slow) else rng.randint(0, 1)
            self._ends[uid] = self.round + slow
            if slow and often(rng, 0.8):
                yield self._set_pod(replace(pod, terminating=True))
        for uid, due in list(self._ends.items()):
            if due <= self.round:
                del self._ends[uid]
                yield from self._remove(uid, often(rng, self._owners))

    def _remove(self, uid: str, again: bool) -> Iterator[Event]:
        pod = self.pods.pop(uid, None)
        if pod is None:
            return
        self._binds.pop(uid, None)
        yield PodGone(uid)
        if again:
            self._made += 1
            name = f"{uid.partition('.')[0]}.{self._made}"
            yield self._set_pod(
                replace(
                    pod,
                    uid=name,
                    name=name,
                    created=self.round,
                    node=None,
                    nominated=None,
                    terminating=False,
                    started=0,
                    devices=(),
                )
            )

    def _add_pods(self) -> Iterator[Event]:
        """A workload: pods of one kind, or a gang."""
        rng, make = self.rng, self.make
        first = make.pod(f"p{self._made}", self.round)
        many = rng.choice((1, 1, 2, 3, 4, 6)) * (1 + (self.round == 0) + make.profile.big)
        many += 4 * make.profile.cards_only
        in_gang = make.profile.with_gangs and often(rng, 0.4)
        gang: str | None = None
        if in_gang:
            gang = f"{first.namespace}/g{rng.randint(0, 5)}"
            if gang not in self.there.gangs:
                self.there.gangs[gang] = make.gang(gang, self.round)
                yield GangSet(self.there.gangs[gang])
        several = in_gang and often(rng, 0.2)
        for _ in range(many):
            uid = f"p{self._made}"
            self._made += 1
            self._pods_left -= 1
            pod = replace(first, uid=uid, name=uid, gang=gang)
            if in_gang:
                pod = replace(pod, task=rng.choice(TASKS))
            if several:
                pod = replace(pod, quota=rng.choice(make.quotas.named))
            yield self._set_pod(pod)

    def _end_pod(self) -> Iterator[Event]:
        """A pod ends or is deleted; a running one at times terminates first."""
        if not self.pods:
            return
        uid = self.rng.choice(list(self.pods))
        pod = self.pods[uid]
        if not pod.terminating and often(self.rng, 0.3):
            self._ends[uid] = self.round + self.rng.randint(1, 4)
            yield self._set_pod(replace(pod, terminating=True))
        else:
            yield from self._remove(uid, again=False)

    def _change_pod(self) -> Iterator[Event]:
        """A namespace's gates are lifted, or the priority, quota or labels of a pod change."""
        if not self.pods:
            return
        gated = [uid for uid, pod in self.pods.items() if pod.gated]
        if gated and often(self.rng, 0.6):
            namespace = self.pods[self.rng.choice(gated)].namespace
            for uid in gated:
                if self.pods[uid].namespace == namespace:
                    yield self._set_pod(replace(self.pods[uid], gated=False))
            return
        pod = self.pods[self.rng.choice(list(self.pods))]
        changed = (
            replace(pod, priority=self.rng.choice((0, 10, 50))),
            replace(pod, quota=self.rng.choice(self.make.quotas.named)),
            replace(pod, labels=()),
        )
        yield self._set_pod(self.rng.choice(changed))
