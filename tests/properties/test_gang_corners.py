"""What the random walks over gangs have found, each as small as it gets."""

from functools import partial
from typing import Any

import pytest

from aliquot.engine.cycle import Engine
from aliquot.engine.model.decisions import Bind, Decision, evictions
from aliquot.engine.model.events import (
    BindFailed,
    Event,
    NodeGone,
    PodGone,
    PodSet,
)
from aliquot.engine.model.knobs import SECOND
from aliquot.engine.model.pod import Pod
from tests.build import values
from tests.build.engines import books
from tests.build.values import GPU, gang_set

ALL = pytest.mark.parametrize("policy", ["capacity", "fair", "hierarchy", "queues"])
FLAT = pytest.mark.parametrize("policy", ["capacity", "fair"])


node_set = partial(values.node_set, pods=9)
quota_set = partial(values.quota_set, default_weight=1)


def gang_pod(name: str, gang: str | None = "a/g", gpus: int = 1, **more: Any) -> Pod:
    """A pod of a gang in the gang's namespace; of no gang, in namespace a."""
    namespace = "a" if gang is None else gang.partition("/")[0]
    return values.pod(name, gpus, namespace, gang=gang, **more)


def engine(policy: str, *events: Event) -> Engine:
    made = Engine(policy)
    for event in events:
        made.apply(event)
    return made


def bound(decisions: list[Decision]) -> list[str]:
    return [each.pod.uid for each in decisions if isinstance(each, Bind)]


def evicted(decisions: list[Decision]) -> list[str]:
    return [each.pod.uid for each in evictions(decisions)]


@FLAT
def test_surplus_does_not_start_when_the_core_is_lost_in_the_same_cycle(policy: str) -> None:
    running = [PodSet(gang_pod(f"p{i}", node="n1")) for i in range(2)]
    gang = gang_set("a/g", 2)
    late = engine(
        policy, node_set("n1", 2), quota_set("a", 4), gang, *running, PodSet(gang_pod("late"))
    )
    late.cycle()
    late.apply(NodeGone("n1"))
    late.apply(node_set("n2", 1))
    decisions = late.cycle()
    assert sorted(evicted(decisions)) == ["p0", "p1"]
    assert bound(decisions) == []


@FLAT
def test_surplus_does_not_start_when_the_core_makes_way_in_the_same_cycle(policy: str) -> None:
    """The gang of `b` goes whole for `a`; its surplus pod would fit on another node."""
    core = [PodSet(gang_pod(f"p{i}", "b/g", 2, node="n1")) for i in range(2)]
    quotas = quota_set("a", 4), quota_set("b", 1), quota_set("c", 9)
    made = engine(policy, node_set("n1", 4), *quotas, gang_set("b/g", 2), *core)
    made.cycle()
    made.apply(node_set("n2", 1))
    made.apply(PodSet(gang_pod("big", None, 4, priority=9)))
    made.apply(PodSet(gang_pod("late", "b/g", 1)))
    decisions = made.cycle()
    assert sorted(evicted(decisions)) == ["p0", "p1"]
    assert bound(decisions) == []


@ALL
def test_a_bind_that_fails_after_its_node_was_lost_evicts_nobody(policy: str) -> None:
    made = engine(policy, node_set("n1", 2), quota_set("a", 2), PodSet(gang_pod("p", None)))
    assert bound(made.cycle()) == ["p"]
    made.apply(NodeGone("n1"))
    made.apply(BindFailed("p"))
    assert evicted(made.cycle()) == []


@ALL
def test_to_ask_why_a_gang_waits_reserves_nothing(policy: str) -> None:
    """One of its pods is too large, another stands in: that is a question, not a start."""
    gang = gang_set("a/g", 1), PodSet(gang_pod("large", gpus=3, priority=9))
    made = engine(policy, node_set("n1", 2), quota_set("a", 4), *gang, PodSet(gang_pod("small")))
    before = {uid: entry.stage for uid, entry in books(made).ledger.entries.items()}
    assert made.why("large") is None
    assert {uid: entry.stage for uid, entry in books(made).ledger.entries.items()} == before


def test_a_pod_that_fits_nowhere_is_passed_over_under_hierarchy() -> None:
    gang = gang_set("a/g", 1), PodSet(gang_pod("large", gpus=3, priority=9))
    made = engine(
        "hierarchy", node_set("n1", 2), quota_set("a", 4), *gang, PodSet(gang_pod("small"))
    )
    assert bound(made.cycle()) == ["small"]


def test_a_gang_for_which_room_is_held_can_be_tried_with_a_stand_in() -> None:
    """Held for three of four pods; they do not all fit yet: that must not be an error."""
    made = engine(
        "capacity", quota_set("a", 9), quota_set("b", 9), gang_set("a/g", 3), node_set("n1", 3)
    )
    made.apply(PodSet(gang_pod("x", "b/x", node="n1")))
    for i in range(4):
        made.apply(PodSet(gang_pod(f"p{i}")))
    made.cycle()
    made.apply(PodSet(gang_pod("y", "b/y")))
    assert bound(made.cycle()) == ["y"]
    made.cycle(400 * SECOND)
    made.apply(PodGone("x"))
    assert bound(made.cycle(401 * SECOND)) == []


@pytest.mark.parametrize("policy", ["capacity", "fair", "hierarchy"])
def test_a_gang_does_not_evict_its_own_core_for_its_surplus(policy: str) -> None:
    """It would be incomplete then, and the one for whom they went could not start."""
    core = [PodSet(gang_pod(f"p{i}", node="n1")) for i in range(2)]
    made = engine(policy, node_set("n1", 2), quota_set("a", 2), gang_set("a/g", 2), *core)
    made.cycle()
    made.apply(PodSet(gang_pod("urgent", priority=9)))
    assert evicted(made.cycle()) == []


@pytest.mark.parametrize("policy", ["capacity", "fair", "queues"])
def test_the_surplus_of_a_gang_that_goes_whole_goes_with_it(policy: str) -> None:
    """A claim of two pods takes the surplus first, then the core; nobody is put back alone."""
    sizes = {"p0": 1, "p1": 2, "p2": 1}
    made = engine(
        policy, node_set("n1", 4), quota_set("a", 2), quota_set("b", 0), quota_set("c", 9)
    )
    made.apply(gang_set("b/g", 2))
    for i, (name, gpus) in enumerate(sizes.items()):
        made.apply(PodSet(gang_pod(name, "b/g", gpus, node="n1", created=i)))
    made.apply(gang_set("a/g", 2))
    made.apply(PodSet(gang_pod("c0")))
    made.apply(PodSet(gang_pod("c1")))
    gone = evicted(made.cycle())
    assert len(gone) in (0, 1, 3)


def test_a_gang_without_a_task_that_it_needs_has_no_surplus() -> None:
    """What is left of it is never too few to run, so it goes whole."""
    members = [PodSet(gang_pod(f"p{i}", "b/g", node="n1")) for i in range(2)]
    gang = gang_set("b/g", 1, min_tasks=(("w", 1),))
    made = engine(
        "capacity", node_set("n1", 2), quota_set("a", 1), quota_set("b", 1), gang, *members
    )
    made.apply(PodSet(gang_pod("c", None)))
    assert len(evicted(made.cycle())) in (0, 2)


def test_nobody_makes_way_in_a_queue_for_a_claim_that_can_use_what_is_idle() -> None:
    """The queue deserves 2 and uses 2; 2 more are idle. Nobody has to go for one of them."""
    low = gang_pod("low", None, 2, node="n1")
    made = engine(
        "queues",
        node_set("n1", 2),
        node_set("n2", 2),
        quota_set("a", 0, deserved=((GPU, 2),)),
        PodSet(low),
    )
    made.cycle()
    made.apply(PodSet(gang_pod("high", None, 1, priority=9)))
    decisions = made.cycle()
    assert evicted(decisions) == []
    assert bound(decisions) == ["high"]


@ALL
def test_a_victim_that_is_overdue_does_not_stay_because_its_node_has_changed(policy: str) -> None:
    made = engine(
        policy, node_set("n1", 1), quota_set("a", 1), PodSet(gang_pod("low", None, node="n1"))
    )
    made.cycle()
    made.apply(PodSet(gang_pod("high", None, priority=9)))
    assert evicted(made.cycle(SECOND)) == ["low"]
    made.cycle(400 * SECOND)
    made.apply(node_set("n1", 1, pods=8))
    assert evicted(made.cycle(401 * SECOND)) == []
