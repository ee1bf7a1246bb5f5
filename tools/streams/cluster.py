"""A random cluster that carries out what the engine decides, sooner or later, or not at all.

Before each cycle, `events` says what has happened since the last: pods come and end, binds are
confirmed or fail, victims terminate fast or slowly and are created anew, bounds are lowered, nodes
are lost and return. `take` notes the decisions, `advance` moves the time on. All is drawn from one
`random.Random`: the same decisions lead to the same events.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from random import Random

from aliquot.engine import (
    SECOND,
    Bind,
    BindFailed,
    BudgetGone,
    BudgetSet,
    Decision,
    Device,
    DeviceGone,
    DeviceSet,
    Event,
    Evict,
    EvictFailed,
    Gang,
    GangGone,
    GangSet,
    GpuQuotaGone,
    GpuQuotaSet,
    Node,
    NodeGone,
    NodeSet,
    Pod,
    PodGone,
    PodSet,
    Quota,
    QuotaGone,
    QuotaSet,
    WeightSet,
)

from .objects import NAMESPACES, TASKS, Objects, often
from .text import Nomination, flat

_FORTY_MINUTES = 2400 * SECOND
"""Longer than the engine waits for the confirmation of a bind."""


class Cluster:
    """The objects of one cluster, and what is under way in it."""

    def __init__(self, rng: Random, policy: str, big: bool = False) -> None:
        self.rng = rng
        self.policy = policy
        self.make = Objects(rng, policy, big)
        self.knobs = self.make.knobs()
        self.now = 0
        self.round = 0
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.quotas: dict[str, Quota] = {}
        self.gangs: dict[str, Gang] = {}
        self.devices: dict[str, Device] = {}
        self.lost: list[Node] = []
        self._closed_quotas: list[Quota] = []
        self._budgets: dict[str, None] = {}
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
        self._changes: list[tuple[Callable[[], Iterable[Event]], float]] = [
            (self._end_pod, 4),
            (self._edit_quota, 3),
            (self._change_pod, 2),
            (self._lose_node, 0.4),
            (self._return_node, 1.5),
            (self._change_node, 0.7),
            (self._drop_quota, 0.4),
            (self._return_quota, 0.6),
            (self._change_gang, 1.0 if self.make.with_gangs else 0.0),
            (self._change_device, 1.5 if self.make.with_devices else 0.0),
            (self._change_gpu_quota, 1.0 if self.make.with_devices else 0.0),
            (self._change_budget, 0.7),
            (self._change_weight, 1.0 if policy == "queues" else 0.0),
        ]

    def events(self) -> Iterator[Event]:
        """What has happened since the last cycle; at first, the objects that are there."""
        if self.round == 0:
            yield from self._initial()
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

    def _initial(self) -> Iterator[Event]:
        rng, make = self.rng, self.make
        for quota in make.quotas():
            yield self._set_quota(quota)
        for number in range(rng.randint(6, 12) if make.big else rng.randint(1, 4)):
            yield from self._set_node(make.node(f"n{number}"))
        for namespace in NAMESPACES if make.with_devices else ():
            if often(rng, 0.6):
                yield GpuQuotaSet(make.gpu_quota(namespace))
        if self.policy == "queues":
            yield from self._change_weight()

    def _set_quota(self, quota: Quota) -> Event:
        self.quotas[quota.name] = quota
        return QuotaSet(quota)

    def _set_node(self, node: Node) -> Iterator[Event]:
        self.nodes[node.name] = node
        yield NodeSet(node)
        if self.make.with_devices and not any(
            device.node == node.name for device in self.devices.values()
        ):
            for device in self.make.devices(node.name):
                self.devices[device.name] = device
                yield DeviceSet(device)

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
            if bind.node not in self.nodes or pod.terminating or often(self.rng, self._fails):
                yield BindFailed(uid)
            else:
                bound = {"node": bind.node, "devices": bind.devices, "started": self.now}
                yield self._set_pod(replace(pod, nominated=None, **bound))
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
            if often(rng, self._fails) and pod.node in self.nodes:
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
            fresh = {"uid": name, "name": name, "created": self.round, "started": 0}
            rest = {"node": None, "nominated": None, "devices": (), "terminating": False}
            yield self._set_pod(replace(pod, **fresh, **rest))

    def _add_pods(self) -> Iterator[Event]:
        """A workload: pods of one kind, or a gang."""
        rng, make = self.rng, self.make
        first = make.pod(f"p{self._made}", self.round)
        many = rng.choice((1, 1, 2, 3, 4, 6)) * (1 + (self.round == 0) + make.big)
        many += 4 * make.cards_only
        in_gang = make.with_gangs and often(rng, 0.4)
        gang: str | None = None
        if in_gang:
            gang = f"{first.namespace}/g{rng.randint(0, 5)}"
            if gang not in self.gangs:
                self.gangs[gang] = make.gang(gang, self.round)
                yield GangSet(self.gangs[gang])
        several = in_gang and often(rng, 0.2)
        for _ in range(many):
            uid = f"p{self._made}"
            self._made += 1
            self._pods_left -= 1
            pod = replace(first, uid=uid, name=uid, gang=gang)
            if in_gang:
                pod = replace(pod, task=rng.choice(TASKS))
            if several:
                pod = replace(pod, quota=rng.choice(make.named))
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
        """A gate is lifted, or a priority, label or quota of a pod changes."""
        if not self.pods:
            return
        gated = [uid for uid, pod in self.pods.items() if pod.gated]
        if gated and often(self.rng, 0.6):
            yield self._set_pod(replace(self.pods[self.rng.choice(gated)], gated=False))
            return
        pod = self.pods[self.rng.choice(list(self.pods))]
        named = self.rng.choice(self.make.named)
        changes = ({"priority": self.rng.choice((0, 10, 50))}, {"quota": named}, {"labels": ()})
        yield self._set_pod(replace(pod, **self.rng.choice(changes)))

    def _edit_quota(self) -> Iterator[Event]:
        if self.quotas:
            yield self._set_quota(self.make.edited(self.quotas[self.rng.choice(list(self.quotas))]))

    def _drop_quota(self) -> Iterator[Event]:
        """A quota without children is deleted."""
        parents = {quota.parent for quota in self.quotas.values()}
        free = [
            name
            for name, quota in self.quotas.items()
            if name not in parents and not quota.fallback
        ]
        if free:
            name = self.rng.choice(free)
            self._closed_quotas.append(self.quotas.pop(name))
            yield QuotaGone(name)

    def _return_quota(self) -> Iterator[Event]:
        """A quota that was deleted is created again."""
        if self._closed_quotas:
            quota = self._closed_quotas[-1]
            if quota.parent is None or quota.parent in self.quotas:
                yield self._set_quota(self._closed_quotas.pop())

    def _lose_node(self) -> Iterator[Event]:
        if self.nodes:
            node = self.nodes.pop(self.rng.choice(list(self.nodes)))
            self.lost.append(node)
            yield NodeGone(node.name)
            if often(self.rng, 0.5):
                for device in [each for each in self.devices.values() if each.node == node.name]:
                    del self.devices[device.name]
                    yield DeviceGone(device.name)

    def _return_node(self) -> Iterator[Event]:
        """A lost node returns, or a new one joins."""
        if self.lost:
            yield from self._set_node(self.lost.pop())
        elif often(self.rng, 0.2):
            yield from self._set_node(self.make.node(f"n{len(self.nodes)}"))

    def _change_node(self) -> Iterator[Event]:
        """A node's resources, labels or taints change; its class stays."""
        if self.nodes:
            old = self.nodes[self.rng.choice(list(self.nodes))]
            node = replace(self.make.node(old.name), node_class=old.node_class)
            yield from self._set_node(node)

    def _change_gang(self) -> Iterator[Event]:
        if not self.gangs:
            return
        name = self.rng.choice(list(self.gangs))
        if often(self.rng, 0.3):
            del self.gangs[name]
            yield GangGone(name)
        else:
            self.gangs[name] = self.make.gang(name, self.gangs[name].created)
            yield GangSet(self.gangs[name])

    def _change_device(self) -> Iterator[Event]:
        if not self.devices:
            return
        old = self.devices[self.rng.choice(list(self.devices))]
        if often(self.rng, 0.3):
            del self.devices[old.name]
            yield DeviceGone(old.name)
        else:
            device = self.make.device(old.name, old.node, old.index, old.model)
            self.devices[old.name] = device
            yield DeviceSet(device)

    def _change_gpu_quota(self) -> Iterator[Event]:
        namespace = self.rng.choice(NAMESPACES)
        if often(self.rng, 0.2):
            yield GpuQuotaGone(namespace)
        else:
            yield GpuQuotaSet(self.make.gpu_quota(namespace))

    def _change_budget(self) -> Iterator[Event]:
        namespace = self.make.namespace()
        budget = self.make.budget(namespace, self.rng.choice("uvw"))
        if budget.path in self._budgets and often(self.rng, 0.5):
            del self._budgets[budget.path]
            yield BudgetGone(budget.path)
        else:
            self._budgets[budget.path] = None
            yield BudgetSet(budget)

    def _change_weight(self) -> Iterator[Event]:
        yield WeightSet(self.rng.choice(NAMESPACES), self.rng.randint(1, 4))
