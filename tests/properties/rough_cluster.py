"""A random cluster in which everything happens that can happen to one.

What the clusters of `tools.streams` do, and besides: pods are resized in place, bound by others
without asking, run with a known end; quotas are created and move to other parents; nodes are
cordoned, drained, deleted, cease to be ready and return; the clock is set back. In some clusters
pods have rules about other pods. When the control plane crashes, each bind that was decided was
written, or was not.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from random import Random

from aliquot.engine import (
    SECOND,
    Bind,
    Event,
    Node,
    NodeSet,
    Pod,
    PodSet,
    Quota,
    QuotaSet,
    Taint,
)
from aliquot.engine.model.pod_rules import NO_RULES
from tests.properties.rough_rules import RoughRules
from tools.streams.cluster import Cluster
from tools.streams.profile import NAMESPACES, often

_CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
_NOT_READY = Taint("node.kubernetes.io/not-ready", "", "NoExecute")
_GRACE = 30 * SECOND


class RoughCluster(Cluster):
    """One cluster, and how it comes to rest."""

    def __init__(
        self, rng: Random, policy: str, big: bool = False, rules: RoughRules | None = None
    ) -> None:
        super().__init__(rng, policy, big)
        self._rules = rules
        self._with_ends = often(rng, 0.4)
        self._steps_back = often(rng, 0.2)
        self._numbers = 0
        tree = policy in ("hierarchy", "queues")
        self._changes += [
            (self._resize, 0.7),
            (self._bind_elsewhere, 0.5),
            (self._create_quota, 0.3),
            (self._move_quota, 0.7 if tree else 0.0),
            (self._cordon, 0.6),
            (self._drain, 0.2),
            (self._fail_node, 0.5),
            (self._mend_node, 1.2),
        ]
        if rules is not None:
            self._changes += [(self._relabel_pod, 2.0), (self._relabel_node, 0.7)]

    def advance(self, deadline: int | None) -> None:
        """Move the time on; in some clusters the clock is set back at times."""
        super().advance(deadline)
        if self._steps_back and often(self.rng, 0.03):
            self.now = max(self.now - self.rng.choice((1, 10, 100, 4000)) * SECOND, 0)

    def facts(self, assumed: Mapping[str, Bind], leaving: Collection[str] = ()) -> list[Event]:
        """What a fresh engine is told of it, as if these binds and evictions had begun."""
        pods = dict(self.pods)
        for uid, bind in assumed.items():  # they hold what is theirs until their bind is settled
            bound = replace(pods[uid], node=bind.node, devices=bind.devices)
            pods[uid] = replace(bound, terminating=False)
        for uid in leaving:
            pods[uid] = replace(pods[uid], terminating=True, gone_by=None)
        return [*self.there.facts(), *map(PodSet, pods.values())]

    def crash(self) -> Iterator[Event]:
        """The control plane ends: of the writes that were decided, some have been made."""
        for uid, (_, bind) in list(self._binds.items()):
            del self._binds[uid]
            pod = self.pods.get(uid)
            if pod is None or bind.node not in self.there.nodes or often(self.rng, 0.5):
                continue
            bound = replace(pod, node=bind.node, devices=bind.devices, started=self.now)
            self.pods[uid] = replace(bound, nominated=None)
        evicted, self._evicted = self._evicted, []
        for uid in evicted:
            if uid in self.pods and often(self.rng, 0.5):
                self._ends[uid] = self.round + 1
                self.pods[uid] = replace(self.pods[uid], terminating=True)
        self._nominated.clear()
        yield from self.facts({})

    def is_busy(self) -> bool:
        """Is anything under way that the engine waits for?"""
        return bool(self._binds or self._ends or self._evicted or self._nominated)

    def lost_nodes(self) -> bool:
        """Are there nodes that were lost and are not back, or pods on them?"""
        nodes = self.there.nodes
        return bool(self.there.lost) or any(pod.node not in nodes for pod in self._running())

    def quiet(self) -> Iterator[Event]:
        """What is under way happens, and nothing else: binds succeed, victims leave."""
        fails, self._fails = self._fails, 0.0
        self._binds = {uid: (0, bind) for uid, (_, bind) in self._binds.items()}
        yield from self._confirm()
        yield from self._terminate()
        self._fails = fails
        self.round += 1

    def _set_pod(self, pod: Pod) -> Event:
        if pod.terminating and pod.gone_by is None and pod.node is not None:
            pod = replace(pod, gone_by=self.now + _GRACE)
        if not pod.terminating and pod.gone_by is not None:
            pod = replace(pod, gone_by=None)  # it takes the place of a pod that has gone
        return super()._set_pod(pod)

    def _add_pods(self) -> Iterator[Event]:
        lasts = self.rng.choice((30, 90, 400)) * SECOND
        ends = self._with_ends and often(self.rng, 0.6)
        endless = not ends and often(self.rng, 0.3)
        rules = NO_RULES if self._rules is None else self._rules.of_workload()
        for event in super()._add_pods():
            if isinstance(event, PodSet) and (ends or endless or rules is not NO_RULES):
                known = lasts if ends else None
                pod = replace(event.pod, expected_duration=known, endless=endless, rules=rules)
                yield self._set_pod(pod)
            else:
                yield event

    def _running(self) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.node is not None]

    def _resize(self) -> Iterator[Event]:
        """A running pod is resized in place, without asking."""
        running = self._running()
        if running:
            pod = self.rng.choice(running)
            factor = self.rng.choice((1, 2, 3))
            requests = tuple(
                (name, max(amount * factor // 2, 1) if name != "pods" else amount)
                for name, amount in pod.shape.requests
            )
            yield self._set_pod(
                replace(pod, shape=replace(pod.shape, requests=requests, charges=()))
            )

    def _bind_elsewhere(self) -> Iterator[Event]:
        """Another scheduler binds a pod, whatever the bounds say."""
        if not self.there.nodes:
            return
        pod = self.make.pod(f"other{self._made}", self.round)
        self._made += 1
        if self._rules is not None:
            pod = replace(pod, rules=self._rules.of_workload())
        if pod.shape.gpu is None:
            node = self.rng.choice(list(self.there.nodes))
            yield self._set_pod(replace(pod, node=node, gated=False, started=self.now))

    def _relabel_pod(self) -> Iterator[Event]:
        """The labels of a pod change, whether it runs or not."""
        if self.pods and self._rules is not None:
            pod = self.pods[self.rng.choice(list(self.pods))]
            yield self._set_pod(self._rules.relabelled_pod(pod))

    def _relabel_node(self) -> Iterator[Event]:
        """A node is in another zone than before."""
        if self.there.nodes and self._rules is not None:
            node = self.there.nodes[self.rng.choice(list(self.there.nodes))]
            yield self._change_state(self._rules.relabelled_node(node))

    def _create_quota(self) -> Iterator[Event]:
        """A quota that was never there before."""
        rng, quotas = self.rng, self.there.quotas
        self._numbers += 1
        low, high = self.make.quotas.bounds()
        parents = [None, *(name for name, quota in quotas.items() if quota.is_parent)]
        tree = self.policy in ("hierarchy", "queues")
        quota = Quota(
            f"{rng.choice((*NAMESPACES, 'e'))}/new{self._numbers}",
            low,
            high,
            parent=rng.choice(parents) if tree else None,
            namespaces=frozenset({rng.choice((*NAMESPACES, "e"))}) if not tree else frozenset(),
            lend=self.policy != "queues",
            default_weight=rng.randint(1, 3) if self.policy == "queues" else 0,
        )
        if tree:
            self.make.quotas.named.append(quota.name)
        quotas[quota.name] = quota
        yield QuotaSet(quota)

    def _move_quota(self) -> Iterator[Event]:
        """A quota moves below another parent."""
        quotas = self.there.quotas
        free = [q for q in quotas.values() if not (q.is_parent or q.fallback or q.unshared)]
        if free:
            quota = self.rng.choice(free)
            parents = [None, *(name for name, each in quotas.items() if each.is_parent)]
            quotas[quota.name] = replace(quota, parent=self.rng.choice(parents))
            yield QuotaSet(quotas[quota.name])

    def _change_state(self, node: Node) -> Event:
        self.there.nodes[node.name] = node
        return NodeSet(node)

    def _cordon(self) -> Iterator[Event]:
        if self.there.nodes:
            node = self.there.nodes[self.rng.choice(list(self.there.nodes))]
            if _CORDON not in node.taints:
                deleted = often(self.rng, 0.2)
                taints = (*node.taints, _CORDON)
                yield self._change_state(replace(node, taints=taints, deleted=deleted))

    def _drain(self) -> Iterator[Event]:
        """A cordoned node is drained: its pods terminate."""
        cordoned = {n.name for n in self.there.nodes.values() if _CORDON in n.taints}
        for pod in self._running():
            if pod.node in cordoned and not pod.terminating:
                self._ends[pod.uid] = self.round + self.rng.randint(1, 4)
                yield self._set_pod(replace(pod, terminating=True))

    def _fail_node(self) -> Iterator[Event]:
        """A node is not ready; what terminates on it does not end."""
        if self.there.nodes:
            node = self.there.nodes[self.rng.choice(list(self.there.nodes))]
            if node.ready:
                since = self.now if often(self.rng, 0.8) else None
                taints = (*node.taints, _NOT_READY)
                yield self._change_state(
                    replace(node, taints=taints, ready=False, not_ready_since=since)
                )

    def _mend_node(self) -> Iterator[Event]:
        """A node takes pods again."""
        for node in list(self.there.nodes.values()):
            bad = {_CORDON, _NOT_READY} & set(node.taints)
            if (bad or not node.ready) and often(self.rng, 0.6):
                taints = tuple(taint for taint in node.taints if taint not in bad)
                yield self._change_state(
                    replace(node, taints=taints, ready=True, not_ready_since=None, deleted=False)
                )
