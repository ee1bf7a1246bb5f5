"""A rolling upgrade of every node evicts no pod that is within its quota's min."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.engine.cycle import Engine
from aliquot.engine.model.decisions import Bind, binds_and_evictions
from aliquot.engine.model.events import Event, NodeGone, NodeSet, PodGone, PodSet, QuotaSet
from aliquot.engine.model.knobs import SECOND, EvictionKnobs, Knobs
from aliquot.engine.model.node import Node, Taint
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.quota import Quota
from aliquot.engine.model.reasons import Reason
from tests.build import values
from tests.build.engines import books
from tests.build.values import GPU
from tests.campaign import examples
from tests.properties.books import check_books

POLICIES = ("capacity", "fair", "hierarchy", "queues")
TEAMS = ("a", "b", "c")
LOST_AFTER = 300
CORDONED = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
NOT_READY = Taint("node.kubernetes.io/not-ready", "", "NoSchedule")


@dataclass(frozen=True)
class Upgrade:
    """How one node is upgraded: steps that may be left out, and how long they take."""

    node: int
    cordoned: int
    """For how many seconds before its pods are deleted."""
    grace: int
    """How long its pods take to terminate."""
    down: int
    """How long it is not ready, or gone; less than `nodeLostAfter`."""
    gone: bool


@dataclass(frozen=True)
class Case:
    sizes: tuple[int, ...]
    """The GPUs of each node."""
    quotas: tuple[Quota, ...]
    wanted: dict[str, int]
    """How many pods of one GPU each team wants to run."""
    upgrades: tuple[Upgrade, ...]


@st.composite
def cases(draw: st.DrawFn, policy: str) -> Case:
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=2, max_size=4)))
    left, quotas = sum(sizes), []
    for team in TEAMS:
        low = draw(st.integers(0, left)) if team != TEAMS[-1] else left
        left -= low
        fixed = policy == "queues" and draw(st.booleans())
        more: dict[str, Any] = {"deserved": ((GPU, low),)} if fixed else {}
        more |= {"lend": policy != "queues", "default_weight": draw(st.integers(1, 3))}
        quotas.append(values.quota(team, low, **more))
    order = draw(st.permutations(range(len(sizes))))
    upgrades = tuple(
        Upgrade(
            node,
            cordoned=draw(st.sampled_from((0, 30, 400))),
            grace=draw(st.sampled_from((0, 30, 200))),
            down=draw(st.sampled_from((1, 130, LOST_AFTER - 1))),
            gone=draw(st.booleans()),
        )
        for node in order
    )
    return Case(sizes, tuple(quotas), {t: draw(st.integers(0, 9)) for t in TEAMS}, upgrades)


class Cluster:
    """Pods of one GPU, which their owners replace; checks every eviction against min."""

    def __init__(self, policy: str, case: Case) -> None:
        knobs = Knobs(eviction=EvictionKnobs(node_lost_after=LOST_AFTER * SECOND))
        self._policy, self._knobs = policy, knobs
        self.engine = Engine(policy, knobs)
        self.second = 0
        self.guarded = True
        """Is every eviction checked against min?"""
        self._mins = {quota.name: dict(quota.min).get(GPU, 0) for quota in case.quotas}
        self._facts: dict[str, Event] = {}
        self.pods: dict[str, Pod] = {}
        self._made = 0
        for quota in case.quotas:
            self._tell(quota.name, QuotaSet(quota))
        self.nodes = [values.node(f"n{i}", gpus) for i, gpus in enumerate(case.sizes)]
        for node in self.nodes:
            self.set_node(node)
        for team, wanted in case.wanted.items():
            for _ in range(wanted):
                self.create(team)

    def _tell(self, name: str, event: Event) -> None:
        self._facts[name] = event
        self.engine.apply(event)

    def set_node(self, node: Node) -> None:
        self._tell(node.name, NodeSet(node))

    def drop_node(self, node: Node) -> None:
        del self._facts[node.name]
        self.engine.apply(NodeGone(node.name))

    def create(self, team: str) -> None:
        self._made += 1
        created = self.second * SECOND
        self.set_pod(values.pod(f"{team}{self._made}", 1, team, created=created))

    def set_pod(self, pod: Pod) -> None:
        self.pods[pod.uid] = pod
        self.engine.apply(PodSet(pod))

    def remove(self, pod: Pod) -> None:
        del self.pods[pod.uid]
        self.engine.apply(PodGone(pod.uid))

    def on(self, node: Node) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.node == node.name]

    def delete(self, node: Node, grace: int) -> None:
        """Delete the pods of a node; their owners replace them at once."""
        for pod in self.on(node):
            if not pod.terminating:
                gone_by = (self.second + grace) * SECOND
                self.set_pod(replace(pod, terminating=True, gone_by=gone_by))
                self.create(pod.namespace)

    def used(self, team: str) -> int:
        """The GPUs of a team's pods that run and stay."""
        pods = (pod for pod in self.pods.values() if pod.namespace == team)
        return sum(pod.node is not None and not pod.terminating for pod in pods)

    def wait(self, seconds: int) -> None:
        """Let so much time pass; the engine decides whenever it wants to, and at the end."""
        end = self.second + seconds
        self.decide()
        while (deadline := self.engine.next_deadline()) is not None and deadline <= end * SECOND:
            self.second = -(-deadline // SECOND)
            self.decide()
        self.second = end
        self.decide()

    def decide(self) -> None:
        for _ in range(60):
            decided = list(binds_and_evictions(self.engine.cycle(self.second * SECOND)))
            if not decided:
                return
            for each in decided:
                pod = each.pod
                if isinstance(each, Bind):
                    self.set_pod(replace(pod, node=each.node, started=self.second * SECOND))
                    continue
                low, used = self._mins[pod.namespace], self.used(pod.namespace)
                within = self.guarded and each.reason is not Reason.NODE_LOST and used <= low
                assert not within, f"{each}: {pod.namespace} uses {used}, its min is {low}"
                self.remove(pod)
                self.create(pod.namespace)
        raise AssertionError("it does not come to rest")

    def stranded(self) -> set[str]:
        """The pods that should be gone by now, on nodes that are not ready."""
        facts = self._facts.values()
        dead = {
            each.node.name for each in facts if isinstance(each, NodeSet) and not each.node.ready
        }
        return {
            pod.uid
            for pod in self.pods.values()
            if pod.gone_by is not None and pod.gone_by <= self.second * SECOND and pod.node in dead
        }

    def fresh(self) -> Engine:
        """An engine that is told what the cluster holds now."""
        engine = Engine(self._policy, self._knobs)
        for event in (*self._facts.values(), *map(PodSet, self.pods.values())):
            engine.apply(event)
        return engine

    def upgrade(self, each: Upgrade) -> None:
        node = self.nodes[each.node]
        self.set_node(replace(node, taints=(CORDONED,)))
        self.wait(each.cordoned)
        self.delete(node, each.grace)
        self.wait(each.grace)
        for pod in self.on(node):
            self.remove(pod)
        if each.gone:
            self.drop_node(node)
        else:
            taints, since = (CORDONED, NOT_READY), self.second * SECOND
            self.set_node(replace(node, taints=taints, ready=False, not_ready_since=since))
        self.wait(each.down)
        self.set_node(node)
        self.wait(60)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=examples(200))
@given(data=st.data())
def test_a_rolling_upgrade_evicts_no_pod_within_min(policy: str, data: st.DataObject) -> None:
    case = data.draw(cases(policy))
    cluster = Cluster(policy, case)
    cluster.wait(10)
    for each in case.upgrades:
        cluster.upgrade(each)


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("policy", ["hierarchy", "queues"])
@settings(max_examples=examples(100))
@given(data=st.data())
def test_guarantees_shrink_when_a_node_is_lost_and_not_before(
    policy: str, gone: bool, data: st.DataObject
) -> None:
    """Every team wants all that it is guaranteed, which together is all that there is."""
    case = data.draw(cases(policy))
    mins = {quota.name: dict(quota.min).get(GPU, 0) for quota in case.quotas}
    cluster = Cluster(policy, replace(case, wanted=mins))
    cluster.wait(0)
    lost = cluster.nodes[data.draw(st.integers(0, len(case.sizes) - 1))]
    cluster.set_node(replace(lost, taints=(CORDONED,)))
    cluster.delete(lost, 0)
    for pod in cluster.on(lost):
        cluster.remove(pod)
    if gone:
        cluster.drop_node(lost)
    else:
        cluster.set_node(replace(lost, taints=(NOT_READY,), ready=False))
    cluster.wait(LOST_AFTER - 1)
    assert shares(cluster.engine) == mins
    cluster.guarded = False  # the teams share what is left
    cluster.wait(1)
    left = sum(case.sizes) - dict(lost.allocatable)[GPU]
    assert sum(shares(cluster.engine).values()) == left


def shares(engine: Engine) -> dict[str, int]:
    """The runtime, or what the queue deserves, of every team."""
    if engine.policy == "queues":
        return {each.name: each.deserved.get(GPU, 0) for each in engine.queues()}
    return {each.name: each.runtime.get(GPU, 0) for each in engine.summarise()}


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=examples(100))
@given(data=st.data())
def test_a_restart_finds_the_same_books_with_stranded_pods(
    policy: str, data: st.DataObject
) -> None:
    """Pods that are stuck on dead nodes hold room, and are charged to no quota."""
    case = data.draw(cases(policy))
    cluster = Cluster(policy, case)
    cluster.wait(10)
    cluster.guarded = False  # nodes may be lost
    for each in case.upgrades[: data.draw(st.integers(1, len(case.upgrades)))]:
        node, since = cluster.nodes[each.node], cluster.second * SECOND
        cluster.set_node(replace(node, taints=(NOT_READY,), ready=False, not_ready_since=since))
        if data.draw(st.booleans()):
            cluster.delete(node, each.grace)
        cluster.wait(data.draw(st.sampled_from((0, each.grace, each.down))))
        if data.draw(st.sampled_from((False, False, True))):
            cluster.set_node(node)
        cluster.wait(data.draw(st.sampled_from((0, 1))))
    fresh, old = cluster.fresh(), books(cluster.engine)
    fresh.cycle(cluster.second * SECOND)
    new = books(fresh)
    check_books(cluster.engine)
    check_books(fresh)
    for state in (old, new):
        assert {uid for uid in cluster.pods if uid in state.stranded} == cluster.stranded()
    assert {new.nodes.slots.names[slot] for slot in new.nodes.lost} == {
        old.nodes.slots.names[slot] for slot in old.nodes.lost
    }
    for uid, pod in cluster.pods.items():
        if pod.node is not None:
            assert new.ledger.entries[uid].booking == old.ledger.entries[uid].booking
            assert bool(new.ledger.entries[uid].booking.charge) == (uid not in old.stranded)
