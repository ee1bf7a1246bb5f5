"""Gangs start together and are never torn apart, under every policy, whatever happens meanwhile.

Binds and evictions are carried out late, in any order, or fail; nodes are lost; gangs are edited.
In what every single cycle decides: who starts brings its gang to its core, or comes on top of it;
who is evicted leaves the core standing, or nobody. And the books are always the sum of the entries.
"""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from aliquot.engine.cycle import Engine
from aliquot.engine.model.events import (
    BindFailed,
    GangGone,
    GangSet,
    NodeGone,
    NodeSet,
    PodGone,
    PodSet,
    QuotaSet,
    WeightSet,
)
from aliquot.engine.model.knobs import SECOND
from tests.build.engines import books
from tests.campaign import examples
from tests.properties.books import check_books
from tests.properties.gang_world import (
    GANGS,
    NODE_NAMES,
    TEAMS,
    Cluster,
    gangs,
    nodes,
    pods,
    quotas,
)


class GangMachine(RuleBasedStateMachine):
    """Everything that can happen to gangs, in any order."""

    policy = "capacity"

    def __init__(self) -> None:
        super().__init__()
        self.engine = Engine(self.policy)
        self.cluster = Cluster()
        self.made = 0
        self.now = 0

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        for name in NODE_NAMES[:2]:
            self.set_node(data, name)
        for team in TEAMS:
            self.set_quota(data, team)
        for name in GANGS:
            self.set_gang(data, name)
        self.add_pods(data, 5)

    @rule(data=st.data(), name=st.sampled_from(NODE_NAMES))
    def set_node(self, data: st.DataObject, name: str) -> None:
        self.cluster.nodes[name] = data.draw(nodes(name))
        self.engine.apply(NodeSet(self.cluster.nodes[name]))

    @rule(name=st.sampled_from(NODE_NAMES))
    def lose_node(self, name: str) -> None:
        self.cluster.nodes.pop(name, None)
        self.engine.apply(NodeGone(name))

    @rule(data=st.data(), team=st.sampled_from(TEAMS), weight=st.integers(1, 3))
    def set_quota(self, data: st.DataObject, team: str, weight: int = 1) -> None:
        self.cluster.quotas[team] = data.draw(quotas(team))
        self.engine.apply(QuotaSet(self.cluster.quotas[team]))
        self.engine.apply(WeightSet(team, weight))

    @rule(data=st.data(), name=st.sampled_from(GANGS), drop=st.sampled_from((False, False, True)))
    def set_gang(self, data: st.DataObject, name: str, drop: bool = False) -> None:
        if drop:
            self.cluster.gangs.pop(name, None)
            self.engine.apply(GangGone(name))
        else:
            self.cluster.gangs[name] = data.draw(gangs(name))
            self.engine.apply(GangSet(self.cluster.gangs[name]))

    @rule(data=st.data(), count=st.integers(1, 4))
    def add_pods(self, data: st.DataObject, count: int) -> None:
        for _ in range(count):
            self.made += 1
            pod = data.draw(pods(self.made))
            self.cluster.pods[pod.uid] = pod
            self.engine.apply(PodSet(pod))

    @precondition(lambda self: self.cluster.pods)
    @rule(data=st.data(), how=st.sampled_from(("gone", "terminating", "ungated")))
    def change_pod(self, data: st.DataObject, how: str) -> None:
        """It has ended, is being deleted, or, while it waits, loses its gates."""
        uid = data.draw(st.sampled_from(sorted(self.cluster.pods)))
        pod = self.cluster.pods[uid]
        if how == "gone":
            self.cluster.gone(uid)
            self.engine.apply(PodGone(uid))
        elif uid not in self.cluster.binding and (how == "terminating" or pod.node is None):
            ends = how == "terminating"
            gated, ends = pod.gated and ends, pod.terminating or ends
            self.cluster.pods[uid] = replace(pod, gated=gated, terminating=ends)
            self.engine.apply(PodSet(self.cluster.pods[uid]))

    @rule(seconds=st.sampled_from((0, 0, 1, 200, 400)))
    def cycle(self, seconds: int) -> None:
        if seconds:
            self.carry_out_all_binds()  # nobody believes for ever in what is not confirmed
        self.now += seconds * SECOND
        self.cluster.take_note(self.engine.cycle(self.now))

    @rule(data=st.data(), count=st.integers(1, 3))
    def add_pods_and_decide(self, data: st.DataObject, count: int) -> None:
        self.add_pods(data, count)
        self.cycle(0)

    @rule()
    def decide_and_bind(self) -> None:
        self.cycle(0)
        self.carry_out_all_binds()

    @precondition(lambda self: self.cluster.binding)
    @rule(data=st.data(), fails=st.sampled_from((False, False, False, True)))
    def carry_out_a_bind(self, data: st.DataObject, fails: bool) -> None:
        uid = data.draw(st.sampled_from(sorted(self.cluster.binding)))
        if uid in self.cluster.evicting:
            return
        if fails:
            del self.cluster.binding[uid]
            self.engine.apply(BindFailed(uid))
        else:
            self.engine.apply(PodSet(self.cluster.bound(uid)))

    def carry_out_all_binds(self) -> None:
        for uid in sorted(self.cluster.binding):
            if uid not in self.cluster.evicting:
                self.engine.apply(PodSet(self.cluster.bound(uid)))

    @precondition(lambda self: self.cluster.evicting)
    @rule(data=st.data(), comes_back=st.booleans())
    def carry_out_an_eviction(self, data: st.DataObject, comes_back: bool) -> None:
        uid = data.draw(st.sampled_from(sorted(self.cluster.evicting)))
        pod = self.cluster.pods[uid]
        self.cluster.gone(uid)
        self.engine.apply(PodGone(uid))
        if comes_back:
            self.made += 1
            again = replace(pod, uid=f"u{self.made}", name=f"p{self.made}", node=None, created=9)
            self.cluster.pods[again.uid] = replace(again, terminating=False)
            self.engine.apply(PodSet(self.cluster.pods[again.uid]))

    @invariant()
    def the_books_are_the_sum_of_the_entries(self) -> None:
        check_books(self.engine)

    @invariant()
    def who_asks_changes_nothing(self) -> None:
        for summary in self.engine.gangs():
            assert summary.running == sum(
                pod.gang == summary.name and self.cluster.host(uid) is not None
                for uid, pod in self.cluster.pods.items()
            )
        waits = {uid for uid in self.cluster.pods if self.cluster.host(uid) is None}
        claim_of = self.engine._gang_claims.lookup()
        assert all(uid in {pod.uid for pod in claim_of(uid).members} for uid in waits)
        claims = books(self.engine).waiting.claims()
        assert waits.issuperset(pod.uid for claim in claims for pod in claim.members)


class FairMachine(GangMachine):
    policy = "fair"


class HierarchyMachine(GangMachine):
    policy = "hierarchy"


class QueuesMachine(GangMachine):
    policy = "queues"


for machine in (GangMachine, FairMachine, HierarchyMachine, QueuesMachine):
    machine.TestCase.settings = settings(
        max_examples=examples(35, sample=10),
        stateful_step_count=40,
        deadline=None,
    )

TestCapacity = GangMachine.TestCase
TestFair = FairMachine.TestCase
TestHierarchy = HierarchyMachine.TestCase
TestQueues = QueuesMachine.TestCase
