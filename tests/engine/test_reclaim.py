"""The victim search beyond the scenarios: gangs, those on their way out, and the knobs."""

from dataclasses import replace
from typing import Any

import pytest

from aliquot.engine.cycle import Engine
from aliquot.engine.model.decisions import Bind, Nominate, evictions
from aliquot.engine.model.events import (
    BindFailed,
    Event,
    EvictFailed,
    NodeGone,
    PodGone,
    PodSet,
    QuotaSet,
)
from aliquot.engine.model.knobs import SECOND, EvictionKnobs, Knobs
from aliquot.engine.model.node import NodeConstraints
from aliquot.engine.model.pod import Shape
from tests.build.engines import books, nominated
from tests.build.values import GPU, node_set, pod, pod_set, quota_set
from tests.engine.gangs import gang


def build(*events: Event, **eviction: Any) -> Engine:
    engine = Engine(knobs=Knobs(eviction=EvictionKnobs(**eviction)))
    for event in events:
        engine.apply(event)
    return engine


def lent(*nodes: str, **eviction: Any) -> Engine:
    """Team b is guaranteed everything, team a has borrowed it all in pods of one GPU."""
    engine = build(quota_set("a/q", 0), quota_set("b/q", 2 * len(nodes)), **eviction)
    for number, name in enumerate(nodes):
        engine.apply(node_set(name, 2))
        for index in range(2):
            engine.apply(pod_set(f"a-{number}-{index}", 1, "a", node=name, created=number))
    return engine


def evicted(decisions: list[Any]) -> list[str]:
    return sorted(each.pod.name for each in evictions(decisions))


def bound(decisions: list[Any]) -> dict[str, str]:
    return {each.pod.name: each.node for each in decisions if isinstance(each, Bind)}


def test_a_gang_reclaims_as_one_claim() -> None:
    engine = lent("n1", "n2", "n3")
    gang(engine, pod("g-0", 2, "b"), pod("g-1", 2, "b"))
    first = engine.cycle()
    victims = evicted(first)
    assert len(victims) == 4
    assert len({name.split("-")[1] for name in victims}) == 2
    assert sorted(nominated(first)) == ["g-0", "g-1"]
    (preemption,) = [each for each in first if isinstance(each, Nominate)]
    assert {each.claimant for each in preemption.victims} == {preemption.pods[0]}
    for name in victims[:3]:
        engine.apply(PodGone(name))
    assert bound(engine.cycle()) == {}, "all of it, or nothing"
    engine.apply(PodGone(victims[3]))
    assert set(bound(engine.cycle())) == {"g-0", "g-1"}


def test_a_gang_that_could_not_start_evicts_no_pods() -> None:
    engine = lent("n1", "n2")
    gang(engine, *(pod(f"g-{i}", 2, "b") for i in range(3)))
    assert evicted(engine.cycle()) == []


def test_no_more_pods_are_evicted_while_victims_linger() -> None:
    engine = lent("n1")
    engine.apply(pod_set("b-1", 2, "b"))
    assert evicted(engine.cycle()) == ["a-0-0", "a-0-1"]
    assert engine.cycle() == []
    refusal = engine.why("b-1")
    assert refusal is not None
    assert refusal.reason == "WaitingForVictims"
    engine.apply(PodGone("a-0-0"))
    assert evicted(engine.cycle()) == []
    engine.apply(PodGone("a-0-1"))
    assert bound(engine.cycle()) == {"b-1": "n1"}


def test_what_comes_free_is_kept_for_the_claimant() -> None:
    engine = lent("n1")
    engine.apply(pod_set("b-1", 1, "b"))
    engine.apply(pod_set("a-late", 1, "a", created=9))
    (victim,) = evicted(engine.cycle())
    engine.apply(PodGone(victim))
    assert bound(engine.cycle()) == {"b-1": "n1"}


def test_pods_that_are_being_deleted_count_as_gone() -> None:
    engine = build(node_set("n1", 2), quota_set("a/q", 0), quota_set("b/q", 2))
    engine.apply(pod_set("a-1", 1, "a", node="n1", terminating=True))
    engine.apply(pod_set("a-2", 1, "a", node="n1"))
    engine.apply(pod_set("b-1", 1, "b"))
    assert evicted(engine.cycle()) == []
    engine.apply(PodGone("a-1"))
    assert bound(engine.cycle()) == {"b-1": "n1"}


def test_a_pod_that_has_just_started_is_spared_for_a_while() -> None:
    second = 10**9
    engine = lent("n1", min_runtime=60 * second)
    engine.apply(pod_set("b-1", 1, "b"))
    assert evicted(engine.cycle(10 * second)) == []
    assert engine.next_deadline() == 60 * second
    assert len(evicted(engine.cycle(60 * second))) == 1


def test_pods_without_a_quota_are_protected_or_go_first() -> None:
    events: list[Event] = [
        node_set("n1", 2),
        quota_set("a/q", 0),
        quota_set("b/q", 2),
        pod_set("free", 1, "other", node="n1", priority=50),
        pod_set("a-1", 1, "a", node="n1"),
        pod_set("b-1", 1, "b"),
    ]
    assert evicted(build(*events).cycle()) == ["a-1"]
    assert evicted(build(*events, quotaless="lowest").cycle()) == ["free"]
    events[-1] = pod_set("b-1", 2, "b")
    assert evicted(build(*events).cycle()) == []
    assert evicted(build(*events, quotaless="lowest").cycle()) == ["a-1", "free"]


def test_a_quota_that_begins_to_borrow_can_be_reclaimed_from() -> None:
    """b's claim finds nobody at first; once a is above its min, a pod of a makes way."""
    engine = build(node_set("n1", 2), node_set("n2", 1), quota_set("a/q", 2), quota_set("b/q", 1))
    for name in ("a-1", "a-2"):
        engine.apply(pod_set(name, 1, "a", node="n1"))
    engine.apply(pod_set("free", 1, "other", node="n2"))
    engine.apply(pod_set("b-1", 1, "b"))
    assert evicted(engine.cycle()) == []
    engine.apply(node_set("n3", 0))
    engine.apply(pod_set("a-3", 1, "a", node="n3"))
    assert len(evicted(engine.cycle())) == 1


def test_a_critical_pod_preempts_any_pod_and_is_never_preempted() -> None:
    critical = 2_000_000_000
    engine = build(node_set("n1", 1), quota_set("a/q", 1), quota_set("b/q", 1))
    engine.apply(pod_set("a-1", 1, "a", node="n1"))
    engine.apply(pod_set("system", 1, "kube-system", priority=critical))
    assert evicted(engine.cycle()) == ["a-1"]
    engine.apply(PodGone("a-1"))
    assert bound(engine.cycle()) == {"system": "n1"}
    engine.apply(pod_set("system", 1, "kube-system", priority=critical, node="n1"))
    engine.apply(pod_set("b-1", 1, "b", priority=critical - 1))
    assert evicted(engine.cycle()) == []


def test_a_large_claim_takes_back_very_many_small_pods() -> None:
    engine = build(
        node_set("big", 300), quota_set("a/q", 0), quota_set("b/q", 10), quota_set("c/q", 300)
    )
    for number in range(30):
        engine.apply(node_set(f"n{number}", 10))
    for number in range(300):
        team = "ab"[number % 2]
        engine.apply(pod_set(f"{team}-{number}", 1, team, node=f"n{number % 30}"))
    engine.apply(pod_set("claim", 280, "c"))
    victims = evicted(engine.cycle())
    assert len(victims) == 300 + 280 - 310
    for name in victims:
        engine.apply(PodGone(name))
    assert bound(engine.cycle()) == {"claim": "big"}


def test_a_hold_survives_an_update_of_its_pod() -> None:
    engine = lent("n1")
    claimant = pod("b-1", 1, "b")
    engine.apply(PodSet(claimant))
    (victim,) = evicted(engine.cycle())
    engine.apply(PodSet(replace(claimant, labels=(("new", "label"),))))
    engine.apply(pod_set("a-late", 1, "a", created=9))
    engine.apply(PodGone(victim))
    decisions = engine.cycle()
    assert bound(decisions) == {"b-1": "n1"}
    assert evicted(decisions) == []


def test_others_can_be_judged_while_a_gang_holds_its_nodes() -> None:
    engine = lent("n1", "n2")
    gang(engine, pod("g-0", 2, "b"), pod("g-1", 2, "b"))
    assert len(evicted(engine.cycle())) == 4
    engine.apply(pod_set("b-first", 1, "b", priority=100))
    engine.cycle()
    deadline = engine.next_deadline()
    assert deadline is not None
    engine.cycle(deadline)
    assert not {"g-0", "g-1"} & set(books(engine).ledger.holding)


def test_a_claim_is_tried_again_when_its_own_quota_comes_within_min() -> None:
    """Above its min it finds nobody; once its quota has given back, it may reclaim elsewhere."""
    engine = build(
        node_set("n1", 4),
        node_set("n2", 4),
        quota_set("a/q", 4),
        quota_set("b/q", 0),
        quota_set("c/q", 8),
    )
    engine.apply(pod_set("a-1", 4, "a", node="n1"))
    engine.apply(pod_set("b-1", 4, "b", node="n2"))
    engine.apply(pod_set("claim", 3, "a"))
    assert evicted(engine.cycle()) == []
    engine.apply(node_set("n1", 0))
    engine.apply(PodGone("a-1"))
    assert evicted(engine.cycle()) == ["b-1"]


def test_pods_of_a_lost_node_are_on_their_way_out() -> None:
    """Their right comes free by itself: nobody else has to go for it."""
    engine = build(
        node_set("n1", 2),
        node_set("n2", 2),
        node_set("n3", 2),
        quota_set("a/q", 2),
        quota_set("b/q", 2),
    )
    for name, where in (("b-1", "n1"), ("b-2", "n2")):
        engine.apply(pod_set(name, 2, "b", node=where))
    engine.cycle()
    engine.apply(NodeGone("n1"))
    engine.apply(pod_set("claim", 2, "a"))
    decisions = engine.cycle()
    assert evicted(decisions) == ["b-1"]
    assert [each.reason for each in evictions(decisions)] == ["NodeLost"]


@pytest.mark.parametrize("answer", ["confirmed", "refused", "late"])
def test_an_unconfirmed_pod_is_not_evicted_with_its_node_before_the_bind_is_answered(
    answer: str,
) -> None:
    """If the bind is refused it has never run: it waits again, and starts elsewhere."""
    engine = build(node_set("n1", 2), quota_set("a/q", 2))
    engine.apply(pod_set("p", 2, "a"))
    assert isinstance(engine.cycle()[0], Bind)
    engine.apply(NodeGone("n1"))
    assert engine.cycle() == []
    engine.apply(node_set("n2", 2))
    assert engine.cycle() == [], "it may run: nothing starts in its place"
    if answer == "confirmed":
        engine.apply(pod_set("p", 2, "a", node="n1"))
        assert [each.reason for each in evictions(engine.cycle())] == ["NodeLost"]
        engine.apply(PodGone("p"))
    else:
        later = 3600 * SECOND if answer == "late" else 0
        if answer == "refused":
            engine.apply(BindFailed("p"))
        (again,) = engine.cycle(later)
        assert isinstance(again, Bind)
        assert (again.pod.uid, again.node) == ("p", "n2")
    assert books(engine).nodes.slots.names.count("n1") == 0


def test_every_node_is_searched_before_a_claim_is_refused_for_want_of_victims() -> None:
    engine = build(quota_set("x/q", 228), quota_set("y/q", 4), quota_set("a/q", 8))
    for number in range(30):
        engine.apply(node_set(f"n{number}", 8))
    for number in range(232):
        engine.apply(pod_set(f"x-{number}", 1, "x", node=f"n{number % 29}", created=9))
    engine.apply(pod_set("y-1", 8, "y", node="n29"))
    engine.apply(pod_set("claim", 8, "a"))
    assert evicted(engine.cycle()) == ["y-1"]


def test_a_victim_that_does_not_leave_is_not_waited_for_for_ever() -> None:
    """`holdFor` after its grace period its claimant seeks another; if it stays it counts again."""
    engine = lent("n1", hold_for=10)
    engine.apply(node_set("n2", 1))
    engine.apply(pod_set("a-old", 1, "a", node="n2", created=-1))
    engine.apply(quota_set("b/q", 3))
    engine.apply(pod_set("b-1", 1, "b"))
    first = engine.cycle(0)
    assert len(evicted(first)) == 1
    overdue = 30 * SECOND + 10
    assert engine.cycle(overdue - 1) == []
    assert engine.next_deadline() == overdue
    second = engine.cycle(overdue)
    assert len(evicted(second)) == 1
    assert evicted(second) != evicted(first)
    stubborn = next(each.pod for each in evictions(first))
    engine.apply(PodSet(stubborn))
    assert stubborn.uid in books(engine).bound_pods.slots


def test_what_leaves_is_exact_again_after_a_saturated_sum() -> None:
    huge = 2**61
    engine = build(quota_set("a/q", 1), node_set("n1", 8))
    for name in ("a-0", "a-1", "a-2"):
        engine.apply(pod_set(name, huge, "a", node="n1", terminating=True))
    engine.apply(PodGone("a-2"))
    row, slot = books(engine).resources.row(GPU), books(engine).nodes.slots["n1"]
    engine.apply(PodGone("a-1"))
    assert books(engine).leaving.room.get(row, slot) == huge


def test_a_gated_pod_has_nothing_held_for_it() -> None:
    engine = lent("n1")
    engine.apply(pod_set("b-1", 1, "b", nominated="n1", gated=True))
    assert not books(engine).ledger.holding


def test_the_node_where_small_pods_run_is_found_among_very_many() -> None:
    """Quota a may give two GPUs only, and all but the last of its nodes hold pods of four."""
    nodes = [f"n{number:04}" for number in range(700)]
    engine = build(quota_set("a/q", 4 * 699), quota_set("b/q", 2))
    for number, name in enumerate(nodes):
        engine.apply(node_set(name, 4 if name != nodes[-1] else 2))
        size = 4 if name != nodes[-1] else 2
        engine.apply(pod_set(f"a-{number}", size, "a", node=name))
    engine.apply(pod_set("b-1", 2, "b"))
    assert evicted(engine.cycle()) == ["a-699"]


def test_a_lowered_quota_gives_back_what_it_can_and_the_rest_later() -> None:
    """Nobody goes beyond what is needed, and pods that have just started go when they may."""
    engine = build(quota_set("a/q", 8), node_set("n1", 8), on_quota_lowered="evict", min_runtime=10)
    for number, (gpus, started) in enumerate(((4, 0), (1, 0), (3, 5))):
        engine.apply(pod_set(f"a-{number}", gpus, "a", node="n1", started=started))
    low = quota_set("a/q", 3, 3)
    engine.apply(low)
    first = engine.cycle(10)
    assert evicted(first) == ["a-0", "a-1"]
    for name in evicted(first):
        engine.apply(PodGone(name))
    assert engine.cycle(15) == []

    engine.apply(QuotaSet(replace(low.quota, min=((GPU, 2),))))
    assert evicted(engine.cycle(16)) == ["a-2"]


def test_a_lowered_min_is_given_back_where_no_quota_lends_it_any_more() -> None:
    engine = build(
        quota_set("a/q", 4), quota_set("b/q", 4), node_set("n1", 8), on_quota_lowered="evict"
    )
    for number in range(4):
        engine.apply(pod_set(f"a-{number}", 1, "a", node="n1", created=number))
        engine.apply(pod_set(f"b-{number}", 1, "b", node="n1", created=number))
    engine.cycle()
    engine.apply(quota_set("a/q", 2))
    gone = engine.cycle()
    assert evicted(gone) == ["a-2", "a-3"]
    assert {each.reason for each in evictions(gone)} == {"QuotaLowered"}


def test_the_victim_that_leaves_first_makes_room_for_either_claim_that_waits() -> None:
    """Two claims wait for one victim each; what the lesser one's leaves, the other takes."""
    engine = build(quota_set("a/q", 0), quota_set("b/q", 4), node_set("n1", 2), node_set("n2", 2))
    for name in ("n1", "n2"):
        engine.apply(pod_set(f"a-{name}", 2, "a", node=name))
    for name in ("b-1", "b-2"):
        engine.apply(pod_set(name, 2, "b", created=5))
    first = engine.cycle()
    assert evicted(first) == ["a-n1", "a-n2"]
    held = nominated(first)
    engine.apply(pod_set("a-again", 2, "a", created=1))
    engine.apply(PodGone(f"a-{held['b-2']}"))
    then = engine.cycle()
    assert (bound(then), evicted(then)) == ({"b-1": held["b-2"]}, [])
    engine.apply(PodGone(f"a-{held['b-1']}"))
    last = engine.cycle()
    assert (bound(last), evicted(last)) == ({"b-2": held["b-1"]}, [])


def test_a_claim_whose_victim_stays_looks_for_another() -> None:
    """The first claim starts with what was freed for the second, before its own victim has gone.

    That one is then left alone, although now the second needs it to go.
    """
    engine = build(node_set("n1", 4), node_set("n2", 4), quota_set("a/q", 2), quota_set("b/q", 4))
    borrowers = [pod(f"a-{n}", 1, "a", node=f"n{1 + n % 2}") for n in range(6)]
    for each in (*borrowers, pod("b-0", 3, "b"), pod("b-1", 1, "b")):
        engine.apply(PodSet(each))
    victims = {d.pod.name: d for d in evictions(engine.cycle())}
    assert len(victims) == 4
    home = {d.pod.name: d.pod.node for d in victims.values()}
    far = [name for name, d in victims.items() if d.claimant and d.claimant.name == "b-0"]
    late = next(name for name in far if [home[each] for each in far].count(home[name]) == 1)
    for name in victims.keys() - {late}:
        engine.apply(PodGone(name))
    assert set(bound(engine.cycle(1))) == {"b-0"}
    engine.apply(EvictFailed(late))
    engine.apply(PodSet(victims[late].pod))
    assert evicted(engine.cycle(2)) == [late]
    engine.apply(PodGone(late))
    assert set(bound(engine.cycle(3))) == {"b-1"}


def test_no_room_is_held_for_a_pod_where_it_may_not_run() -> None:
    """What its victim left, another took; what was held for that one is of no use to it."""
    engine = build(quota_set("a/q", 0), quota_set("b/q", 4))
    for name in ("n1", "n2"):
        labels = (("name", name),)
        engine.apply(node_set(name, 2, labels=labels))
        engine.apply(pod_set(f"a-{name}", 2, "a", node=name))
    engine.apply(pod_set("anywhere", 2, "b", created=5))
    picky = pod("picky", 2, "b", created=6)
    here = replace(picky.shape, constraints=NodeConstraints(selector=(("name", "n2"),)))
    engine.apply(PodSet(replace(picky, shape=here)))
    assert evicted(engine.cycle()) == ["a-n1", "a-n2"]
    engine.apply(PodGone("a-n2"))
    assert bound(engine.cycle()) == {"anywhere": "n2"}
    assert books(engine).ledger.entries["picky"].booking.node != "n1"


def test_a_pod_that_cannot_be_evicted_does_not_shield_the_others_of_its_quota() -> None:
    engine = build(quota_set("a/q", 2), quota_set("b/q", 2), node_set("n1", 2), node_set("n2", 2))
    for number in (1, 2):
        engine.apply(pod_set(f"b-{number}", 2, "b", node=f"n{number}"))
    engine.apply(pod_set("a-1", 2, "a"))
    (refused,) = evicted(engine.cycle())
    engine.apply(EvictFailed(refused))
    (other,) = evicted(engine.cycle())
    assert {refused, other} == {"b-1", "b-2"}
    engine.apply(EvictFailed(other))
    assert evicted(engine.cycle()) == [], "neither goes: there is nobody left to ask"


def test_a_pod_that_others_have_made_unnecessary_stays() -> None:
    """The first pod of a gang seems to need one more to go for its right; the second's gives it."""
    here = NodeConstraints(selector=(("zone", "x"),))
    engine = build(quota_set("a", 2), quota_set("b", 0), quota_set("idle", 1))
    for name, zone in (("n1", "x"), ("n2", "x"), ("n3", "y")):
        labels = (("zone", zone),)
        engine.apply(node_set(name, 1, labels=labels))
        engine.apply(PodSet(pod(f"on-{name}", 1, "b", node=name, priority=-(name == "n3"))))
    shape = Shape(((GPU, 1), ("pods", 1)), here)
    gang(engine, *(replace(pod(f"g-{number}", 1, "a"), shape=shape) for number in range(2)))
    assert evicted(engine.cycle()) == ["on-n1", "on-n2"]
