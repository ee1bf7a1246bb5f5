"""The cycle's own promises: claims as a whole, node classes, and who is tried again when."""

from dataclasses import replace

import pytest

from aliquot.engine.books.ledger import Stage
from aliquot.engine.cycle import Engine
from aliquot.engine.model.decisions import Bind, Wait
from aliquot.engine.model.events import BindFailed, NodeSet, PodGone, PodSet, QuotaSet
from aliquot.engine.model.knobs import SECOND, Knobs, PlacementKnobs
from aliquot.engine.model.node import Taint
from aliquot.engine.model.pod import Pod, Shape
from aliquot.engine.model.reasons import Refusal
from aliquot.engine.queue.claim import Claim
from tests.build.engines import books
from tests.build.values import GPU, node_set, pod, pod_set, quota_set
from tests.engine.gangs import gang


def build(*events: NodeSet | QuotaSet | PodSet) -> Engine:
    engine = Engine()
    for event in events:
        engine.apply(event)
    return engine


def started(engine: Engine) -> dict[str, str]:
    return {d.pod.name: d.node for d in engine.cycle() if isinstance(d, Bind)}


class Tries:
    """Counts how often a claim is looked at."""

    def __init__(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[str] = []
        fit = engine._trial.fit
        assume = fit.assume

        def counted(claim: Claim) -> Refusal | None:
            self.seen.append(claim.uid)
            return assume(claim)

        monkeypatch.setattr(fit, "assume", counted)

    def take(self) -> list[str]:
        seen, self.seen = self.seen, []
        return seen


def test_a_claim_of_several_pods_starts_as_a_whole() -> None:
    engine = build(node_set("n1", 4), node_set("n2", 4))
    gang(engine, pod("g-0", 3), pod("g-1", 3))
    assert started(engine) == {"g-0": "n1", "g-1": "n2"}


def test_a_claim_that_does_not_fit_as_a_whole_leaves_no_trace() -> None:
    engine = build(node_set("n1", 4), node_set("n2", 4), pod_set("small", 2, priority=-1))
    gang(engine, pod("g-0", 3), pod("g-1", 3), pod("g-2", 3))
    assert started(engine) == {"small": "n1"}
    entries = books(engine).ledger.entries
    assert {entries[uid].stage for uid in ("g-0", "g-1", "g-2")} == {Stage.WAITING}
    assert books(engine).ledger.taken.data.sum() == 2 + 1


def test_the_gates_see_all_pods_of_a_claim() -> None:
    engine = build(node_set("n1", 9), quota_set("a/q", 4, 4))
    gang(engine, pod("g-0", 2), pod("g-1", 3))
    holds = [d for d in engine.cycle() if isinstance(d, Wait)]
    assert [hold.pod.name for hold in holds] == ["g-0", "g-1"]
    assert holds[0].refusal.message == (
        f"quota a/q: max 4 {GPU}, used 0, 2 pods ask 5; also BorrowingExhausted ({GPU})"
    )


def test_the_gates_charge_a_pod_by_the_class_of_the_node() -> None:
    """On the large cards the pod counts for four: only the small ones are within its max."""
    shape = Shape(((GPU, 1), ("pods", 1)), charges=(("large", ((GPU, 4),)),))
    claimant = Pod("p", "a", "p", shape)
    engine = build(
        node_set("n1", 8, node_class="large"),
        node_set("n2", 8, node_class="small"),
        quota_set("a/q", 8, 3),
    )
    engine.apply(PodSet(claimant))
    assert started(engine) == {"p": "n2"}
    engine.apply(PodSet(replace(claimant, uid="q", name="q")))
    engine.apply(node_set("n2", 0, node_class="small"))
    assert started(engine) == {}
    refusal = engine.why("q")
    assert refusal is not None
    assert refusal.reason == "NoNodeFits"
    engine.apply(quota_set("a/q", 8, 5))
    assert started(engine) == {"q": "n1"}
    assert books(engine).ledger.used.get(books(engine).resources.row(GPU), 2) == 1 + 4


def test_a_refused_claim_is_tried_again_only_when_something_could_help(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = build(node_set("n1", 8), quota_set("a/q", 4, 4), quota_set("b/q", 4, 8))
    for event in (pod_set("a-1", 4), pod_set("a-2", 1), pod_set("b-1", 4, "b")):
        engine.apply(event)
    assert set(started(engine)) == {"a-1", "b-1"}
    tries = Tries(engine, monkeypatch)

    engine.apply(pod_set("c-1", 1, "c"))
    engine.cycle()
    assert tries.take() == ["c-1"], "an arrival helps nobody else"

    engine.apply(PodGone("b-1"))
    engine.cycle()
    assert "a-2" not in tries.take(), "another quota's end does not lift a's max"

    engine.apply(PodGone("a-1"))
    assert started(engine) == {"a-2": "n1"}


def test_freed_capacity_wakes_only_the_claims_that_fit_into_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = build(node_set("n1", 4), pod_set("one", 1), pod_set("three", 3))
    engine.apply(pod_set("big", 4, priority=-1))
    engine.apply(pod_set("little", 1, priority=-2))
    assert set(started(engine)) == {"one", "three"}
    tries = Tries(engine, monkeypatch)
    engine.apply(PodGone("one"))
    assert started(engine) == {"little": "n1"}, "the big one blocks nobody"
    assert tries.take() == ["little"]


def test_a_whole_lane_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = build(node_set("n1", 1))
    tries = Tries(engine, monkeypatch)
    for number in range(100):
        engine.apply(pod_set(f"p-{number}", 1))
    decisions = engine.cycle()
    assert len(tries.take()) == 2
    assert sum(isinstance(decision, Wait) for decision in decisions) == 99
    assert engine.cycle() == []


def test_a_failed_bind_waits_again_in_its_old_place() -> None:
    engine = build(node_set("n1", 1), pod_set("old", 1, created=1), pod_set("new", 1, created=2))
    assert started(engine) == {"old": "n1"}
    engine.apply(BindFailed("old"))
    assert started(engine) == {"old": "n1"}


def test_held_room_is_given_up_in_time() -> None:
    engine = build(node_set("n1", 2), quota_set("b/q", 9, 9), pod_set("run", 1, node="n1"))
    claimant = pod("claimant", 2, nominated="n1", priority=1, preempts=False)
    engine.apply(PodSet(claimant))
    engine.apply(pod_set("other", 1, "b"))
    assert started(engine) == {}
    deadline = engine.next_deadline()
    assert deadline == 300 * 10**9
    assert [d for d in engine.cycle(deadline - 1) if isinstance(d, Bind)] == []
    after = engine.cycle(deadline)
    assert [d.pod.name for d in after if isinstance(d, Bind)] == ["other"]
    for decision in after:
        if isinstance(decision, Bind):
            engine.apply(PodSet(replace(decision.pod, node=decision.node)))
    assert engine.next_deadline() is None


def test_a_cordoned_node_takes_no_new_pods() -> None:
    cordon = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule", implied=True)
    engine = build(node_set("n1", 4), pod_set("p-1", 1))
    assert started(engine) == {"p-1": "n1"}
    engine.apply(node_set("n1", 4, taints=(cordon,)))
    engine.apply(pod_set("p-2", 1))
    assert started(engine) == {}
    refusal = engine.why("p-2")
    assert refusal is not None
    assert refusal.message == "0/1 nodes fit: 1 that take no new pods (cordoned)"
    engine.apply(node_set("n1", 4))
    assert started(engine) == {"p-2": "n1"}


def test_an_assumed_pod_is_not_taken_back_while_its_volumes_may_be_bound() -> None:
    made = Engine(knobs=Knobs(placement=PlacementKnobs(volume_bind_timeout=3600 * SECOND)))
    made.apply(node_set("n", 1))
    made.apply(pod_set("p", 1))
    assert [type(each) for each in made.cycle(0)] == [Bind]
    assert made.cycle(3600 * SECOND) == []
    deadline = made.next_deadline()
    assert deadline is not None
    assert deadline > 3600 * SECOND
    assert [type(each) for each in made.cycle(deadline)] == [Bind]
