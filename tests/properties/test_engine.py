"""The invariants of the engine, over random clusters and operations, against a plain oracle.

1: nothing is ever pushed above max or a node's capacity, and every pod is counted once.
2: a state rebuilt from the cluster equals the one that lived through its history.
4: no room is left idle that a waiting claim could use under its policy's gates.
5: a fixed point is reached, and nobody is evicted twice for the same claim.
6: every eviction goes by a rule, and says so. (That it is needed: see test_victims.)
7: the same events give the same decisions, whatever order they came in before the first cycle.
"""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from aliquot.engine.cycle import Engine
from aliquot.engine.model.decisions import (
    Bind,
    Decision,
    Evict,
    Nominate,
    Wait,
    binds_and_evictions,
    evictions,
)
from aliquot.engine.model.events import (
    BindFailed,
    Event,
    NodeGone,
    NodeSet,
    PodGone,
    PodSet,
    QuotaGone,
    QuotaSet,
)
from aliquot.engine.model.importance import ImportanceKey, importance
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.summaries import QuotaSummary
from aliquot.engine.policies.over_quota import over_quota_pods
from tests.build.engines import books
from tests.build.values import GPU, node_set, pod_set, quota_set
from tests.campaign import examples, length
from tests.properties.clusters import TEAMS, Oracle, nodes, pods, quotas

NODE_NAMES = ("n-1", "n-2", "n-10")
MOST_ROUNDS = 60
REBUILD_EVERY = length(4, 1)
"""Steps: a rebuild takes more time than the step before it, and what is wrong stays so for some."""


class EngineMachine(RuleBasedStateMachine):
    """Everything that can happen to a cluster, in any order."""

    policy = "capacity"

    def __init__(self) -> None:
        super().__init__()
        self.engine = Engine(self.policy)
        self.oracle = Oracle()
        self.holds: dict[str, str] = {}
        self.pods_made = 0
        self.now = 0
        self.steps = 0

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        for name in NODE_NAMES[:2]:
            self.set_node(data, name)
        for team in TEAMS:
            self.set_quota(data, team)

    @rule(data=st.data(), name=st.sampled_from(NODE_NAMES))
    def set_node(self, data: st.DataObject, name: str) -> None:
        node = data.draw(nodes(name))
        self.oracle.nodes[name] = node
        self.engine.apply(NodeSet(node))

    @rule(name=st.sampled_from(NODE_NAMES))
    def drop_node(self, name: str) -> None:
        self.oracle.nodes.pop(name, None)
        self.engine.apply(NodeGone(name))

    @rule(data=st.data(), namespace=st.sampled_from(TEAMS))
    def set_quota(self, data: st.DataObject, namespace: str) -> None:
        quota = data.draw(quotas(namespace))
        self.oracle.quotas[namespace] = quota
        self.engine.apply(QuotaSet(quota))

    @rule(namespace=st.sampled_from(TEAMS))
    def drop_quota(self, namespace: str) -> None:
        self.oracle.quotas.pop(namespace, None)
        self.engine.apply(QuotaGone(f"{namespace}/quota"))

    @rule(data=st.data(), count=st.integers(1, 4))
    def add_pods(self, data: st.DataObject, count: int) -> None:
        for _ in range(count):
            self.pods_made += 1
            pod = data.draw(pods(self.pods_made))
            self.oracle.waiting[pod.uid] = pod
            self.engine.apply(PodSet(pod))

    @precondition(lambda self: self.oracle.nodes)
    @rule(data=st.data())
    def add_bound_pod(self, data: st.DataObject) -> None:
        """Somebody else put it there, whatever the bounds say."""
        self.pods_made += 1
        node = data.draw(st.sampled_from(sorted(self.oracle.nodes)))
        pod = replace(data.draw(pods(self.pods_made)), node=node)
        self.oracle.running[pod.uid] = (pod, node)
        self.engine.apply(PodSet(pod))

    @precondition(lambda self: self.oracle.running)
    @rule(data=st.data())
    def finish_pod(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.oracle.running)))
        del self.oracle.running[uid]
        self.engine.apply(PodGone(uid))

    @precondition(lambda self: self.oracle.waiting)
    @rule(data=st.data())
    def ungate_pod(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.oracle.waiting)))
        pod = replace(self.oracle.waiting[uid], gated=False)
        self.oracle.waiting[uid] = pod
        self.engine.apply(PodSet(pod))

    @precondition(lambda self: self.oracle.waiting)
    @rule(data=st.data())
    def delete_waiting_pod(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.oracle.waiting)))
        del self.oracle.waiting[uid]
        self.engine.apply(PodGone(uid))

    @rule(fail=st.booleans())
    def cycle(self, fail: bool) -> None:
        """Decide and carry out, again and again, until nothing more happens: that must end."""
        evicted_for: set[tuple[str, str]] = set()
        for _ in range(MOST_ROUNDS):
            decisions = self.engine.cycle(self.now)
            acted = False
            for decision in decisions:
                self.check(decision)
                acted = acted or not isinstance(decision, Wait)
            for victim in evictions(decisions):
                if victim.claimant is not None:
                    pair = (victim.pod.uid, victim.claimant.uid)
                    assert pair not in evicted_for
                    evicted_for.add(pair)
            fail = self.carry_out(decisions, fail)
            deadline = self.engine.next_deadline()
            if not acted and deadline is not None:
                self.now = max(self.now, deadline)
            elif not acted:
                self.at_the_fixed_point()
                return
        raise AssertionError("no fixed point")

    def carry_out(self, decisions: list[Decision], fail: bool) -> bool:
        """Tell the engine what came of its decisions; one bind fails if it should."""
        for decision in binds_and_evictions(decisions):
            match decision:
                case Bind(pod, _) if fail:
                    fail = False
                    del self.oracle.running[pod.uid]
                    self.oracle.waiting[pod.uid] = pod
                    self.engine.apply(BindFailed(pod.uid))
                case Bind(pod, node):
                    self.engine.apply(PodSet(replace(pod, node=node)))
                case Evict(pod):
                    self.engine.apply(PodGone(pod.uid))
        return fail

    def check(self, decision: Decision) -> None:
        """Each decision must be right at the moment it is taken, judged one by one."""
        match decision:
            case Bind(pod, node):
                assert self.oracle.within_quota(pod) is None
                assert self.oracle.fits(pod, self.oracle.nodes[node])
                del self.oracle.waiting[pod.uid]
                self.oracle.running[pod.uid] = (pod, node)
            case Wait(pod, refusal):
                assert pod.uid in self.oracle.waiting
                self.holds[pod.uid] = refusal.reason
            case Evict(pod, claimant, reason, message):
                assert message
                self.check_victim(pod, claimant, reason)
                del self.oracle.running[pod.uid]
            case Nominate(victims=victims):
                for victim in victims:
                    self.check(victim)

    def check_victim(self, victim: Pod, claimant: Pod | None, reason: str) -> None:
        """Nobody goes but by a rule."""
        if claimant is None:
            assert reason == "NodeLost"
            assert self.oracle.running[victim.uid][1] not in self.oracle.nodes
            return
        theirs, ours = self.oracle.quota(victim), self.oracle.quota(claimant)
        assert claimant.uid in self.oracle.waiting
        if reason in ("ReclaimedForMin", "FairShare"):
            assert reason == "ReclaimedForMin" or self.policy == "fair"
            assert theirs is not None
            assert ours not in (None, theirs)
            assert any(
                self.oracle.used({victim.namespace}, resource) > dict(theirs.min).get(resource, 0)
                for resource in dict(victim.shape.requests)
            )
        else:
            assert reason == ("PreemptedInQuota" if ours else "Preempted")
            assert theirs == ours
            assert victim.priority < claimant.priority

    def at_the_fixed_point(self) -> None:
        """Nobody waits who could start, everybody is told why, and asking changes nothing."""
        assert set(self.oracle.waiting) == {c.uid for c in books(self.engine).waiting.claims()}
        for uid, pod in self.oracle.waiting.items():
            reason = self.oracle.refusal(pod)
            why = self.engine.why(uid)
            assert why is not None
            if not books(self.engine).reserved:  # what is reserved counts as used by others
                assert reason is not None
                assert why.reason == reason
            assert why.message
            assert uid in self.holds
        assert not [d for d in self.engine.cycle(self.now) if not isinstance(d, Wait)]
        for claim in list(books(self.engine).waiting.claims()):  # nobody was forgotten to be asked
            books(self.engine).waiting.add(claim)
        assert not [d for d in self.engine.cycle(self.now) if not isinstance(d, Wait)]

    @invariant()
    def books_agree_with_the_oracle(self) -> None:
        state, oracle = books(self.engine), self.oracle
        limit = 2**62
        for namespace, quota in oracle.quotas.items():
            slot = state.tree.slots[quota.name]
            for row, resource in enumerate(state.resources.names):
                used = min(oracle.used({namespace}, resource), limit)
                assert state.ledger.used.get(row, slot) == used
        for name in oracle.nodes:
            slot = state.nodes.slots[name]
            for row, resource in enumerate(state.resources.names):
                taken = oracle.on(name, resource) + self.reserved_on(slot, row)
                assert state.ledger.taken.get(row, slot) == min(taken, limit)

    def reserved_on(self, node: int, row: int) -> int:
        """What is reserved on a node for waiting pods."""
        state = books(self.engine)
        here = (state.ledger.entries[uid] for uid in state.reserved)
        return sum(dict(e.booking.room).get(row, 0) for e in here if e.node == node)

    @invariant()
    def rebuild_equals_incremental(self) -> None:
        self.steps += 1
        if self.steps % REBUILD_EVERY == 0:
            self.compare_with_rebuilt()

    def compare_with_rebuilt(self) -> None:
        fresh = Engine(self.policy)
        for event in reversed(list(self.facts())):
            fresh.apply(event)
        assert figures(fresh, self.engine) == figures(self.engine, self.engine)
        assert books(fresh).repeat_guard.present == books(self.engine).repeat_guard.present
        assert over_quota_pods(books(fresh)) == over_quota_pods(books(self.engine))

    def facts(self) -> list[Event]:
        oracle = self.oracle
        return [
            *(NodeSet(node) for node in oracle.nodes.values()),
            *(QuotaSet(quota) for quota in oracle.quotas.values()),
            *(PodSet(pod) for pod in oracle.waiting.values()),
            *(PodSet(replace(pod, node=node)) for pod, node in oracle.running.values()),
        ]


EngineMachine.TestCase.settings = settings(
    max_examples=examples(200), stateful_step_count=40, deadline=None
)
TestEngine = EngineMachine.TestCase


class FairMachine(EngineMachine):
    """The same under `fair`, which evicts over-quota pods of others only."""

    policy = "fair"

    def check_victim(self, victim: Pod, claimant: Pod | None, reason: str) -> None:
        super().check_victim(victim, claimant, reason)
        if reason in ("ReclaimedForMin", "FairShare"):
            assert victim.uid in self.oracle.over_quota(victim.namespace)
        if reason == "FairShare":
            assert any(
                self.oracle.used({victim.namespace}, resource)
                > self.oracle.sure_of(victim.namespace, resource)
                for resource in dict(victim.shape.requests)
            )


FairMachine.TestCase.settings = EngineMachine.TestCase.settings
TestFair = FairMachine.TestCase


def figures(engine: Engine, lived: Engine) -> list[QuotaSummary]:
    """The figures of quotas; what is reserved is not idle, and only the engine that lived knows."""
    reserved, summaries = books(lived).reserved, engine.summarise()
    return [replace(each, guaranteed=None) for each in summaries] if reserved else summaries


@st.composite
def clusters(draw: st.DrawFn) -> list[Event]:
    events: list[Event] = [NodeSet(draw(nodes(name))) for name in NODE_NAMES]
    events += [QuotaSet(draw(quotas(namespace))) for namespace in TEAMS]
    events += [PodSet(draw(pods(number))) for number in range(draw(st.integers(0, 10)))]
    return events


@settings(deadline=None, max_examples=examples(100))
@given(clusters(), st.data())
def test_the_order_of_events_does_not_matter(events: list[Event], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(events))
    assert decisions(events) == decisions(shuffled)


def decisions(events: list[Event]) -> list[Decision]:
    engine = Engine()
    for event in events:
        engine.apply(event)
    return sorted(engine.cycle(), key=first)


def first(decision: Decision) -> ImportanceKey:
    """The importance of the first pod of a decision."""
    return importance(decision.pods[0] if isinstance(decision, Nominate) else decision.pod)


@settings(deadline=None, max_examples=examples(100))
@given(clusters())
def test_among_pods_alike_the_more_important_start_first(events: list[Event]) -> None:
    started, waiting = set(), []
    for decision in decisions(events):
        if isinstance(decision, Bind):
            started.add(decision.pod.uid)
        elif isinstance(decision, Wait) and not decision.pod.gated:
            waiting.append(decision.pod)
    everybody = [event.pod for event in events if isinstance(event, PodSet)]
    for pod in waiting:
        for other in everybody:
            alike = (other.namespace, other.shape) == (pod.namespace, pod.shape)
            assert not (alike and other.uid in started and importance(pod) < importance(other))


def test_a_pod_is_counted_once_however_often_it_is_told() -> None:
    engine = Engine()
    engine.apply(node_set("n", 8, pods=10))
    engine.apply(quota_set("q", 8, namespaces=frozenset({"team-a"})))
    for _ in range(3):
        engine.apply(pod_set("p", 1, "team-a", uid="u", node="n"))
    assert engine.summarise()[0].used[GPU] == 1
