"""Pods that are loaded many at once are booked as if each had come by itself.

At a moment of a random history two engines start: one is told of every pod by an event, the other
loads all pods at once. Their books are equal, and so is every later decision.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

from aliquot.engine import Decision, Engine, Event, Node, NodeSet, Pod, PodSet, Shape
from aliquot.engine.columns import Columns, Slots
from aliquot.engine.model.quantity import LIMIT
from aliquot.engine.state import State
from aliquot.errors import ArgumentError
from aliquot.mirror.pod_list import PodList
from tests.build.engines import books
from tests.campaign import length
from tests.properties.books import check_books
from tests.properties.long_run import LongRun, without_nomination
from tools.streams.profile import POLICIES
from tools.streams.text import decision_text, flat

_CYCLES = 12
_SEEDS = 4


class _Twins(LongRun):
    """A history in which an engine that was loaded at once decides beside one that was not."""

    twin: Engine | None = None
    loaded = 0

    def start_anew(self) -> None:
        """Two fresh engines go on, told in the same order of the cluster as it is."""
        facts = [without_nomination(event) for event in self.cluster.crash()]
        self.engine = Engine(self.engine.policy, self.cluster.knobs)
        self.twin = Engine(self.engine.policy, self.cluster.knobs)
        pods = PodList(self.twin)
        with pods.gathering():
            for event in facts:
                self.engine.apply(event)
                pods.apply(event)
        self.loaded = len(books(self.engine).bound_pods)
        self.observer = type(self.observer)(self.engine, self.cluster.knobs.eviction.hold_for)
        for event in facts:
            self.observer.see(event)
        check_books(self.twin)
        assert dict(_told(books(self.twin))) == dict(_told(books(self.engine)))

    def crash(self) -> None:
        """No other crash than that at which both start."""

    def apply(self, event: Event) -> None:
        super().apply(event)
        if self.twin is not None:
            self.twin.apply(event)

    def decide(self) -> list[Decision]:
        now = self.cluster.now
        decisions = super().decide()
        if self.twin is not None:
            says = [decision_text(each) for each in flat(self.twin.cycle(now))]
            assert says == [decision_text(each) for each in flat(decisions)]
        return decisions


def _told(state: State) -> Iterator[tuple[str, Any]]:
    """What the books say, by names: which slot a name has does not matter."""
    ledger, bound = state.ledger, state.bound_pods
    entries = ledger.entries
    yield "entries", {uid: (entries[uid].booking, entries[uid].stage) for uid in entries}
    quotas, nodes = state.tree.slots, state.nodes.slots
    yield "paths", {uid: [quotas.names[at] for at in entries[uid].path] for uid in entries}
    for name, slots in (("wanted", quotas), ("held", quotas), ("used", quotas), ("taken", nodes)):
        yield name, _amounts(state, getattr(ledger, name), slots)
    yield "by quota", {quota: set(uids) for quota, uids in ledger.by_quota.items() if uids}
    yield "by node", {nodes.names[at]: set(uids) for at, uids in ledger.by_node.items() if uids}
    yield "pods", state.pods
    for number, index in enumerate((state.by_namespace, state.by_quota_label, state.gangs.members)):
        yield f"index {number}", {name: set(uids) for name, uids in index.items() if uids}
    yield "not preemptible", set(state.not_preemptible)
    yield "fingerprint", state.repeat_guard.present
    yield "bound", {uid: _facts(state, bound.slots[uid]) for uid in bound.slots}
    yield "room of bound", _amounts(state, bound.room, bound.slots)
    yield "charge of bound", _amounts(state, bound.charge, bound.slots)
    for slot in bound.quotas():
        by_importance = [bound.slots.names[at] for at in bound.by_importance(slot).tolist()]
        yield f"order in {quotas.names[slot]}", (bound.ranked(slot), by_importance)


def _amounts(state: State, columns: Columns, slots: Slots) -> dict[tuple[str, str | None], int]:
    names, data = state.resources.names, columns.data[:, : len(slots)]
    found = zip(*(part.tolist() for part in np.nonzero(data)), strict=True)
    return {
        (names[row], slots.names[slot]): int(data[row, slot])
        for row, slot in found
        if slots.names[slot] is not None
    }


def _facts(state: State, slot: int) -> tuple[object, ...]:
    bound = state.bound_pods
    gang = int(bound.gang[slot])
    plain = (bound.priority, bound.created, bound.started, bound.ends)
    return (
        state.nodes.slots.names[bound.node[slot]],
        state.tree.slots.names[bound.quota[slot]],
        *(int(column[slot]) for column in plain),
        bound.namespace_slots.name(int(bound.namespace[slot])),
        None if gang < 0 else bound.gang_slots.name(gang),
        bound.kins.known[bound.kin[slot]],
        bound.shapes[bound.shape[slot]],
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_loaded_at_once_the_books_and_all_later_decisions_are_the_same(policy: str) -> None:
    loaded = 0
    for seed in range(length(_SEEDS, 200)):
        run = _Twins(seed, policy)
        for _ in range(2):
            run.play(_CYCLES)
            run.start_anew()
            loaded += run.loaded
        run.play(_CYCLES)
    assert loaded > _SEEDS


def _pod(number: int, cpu: int, node: str | None = "n") -> Pod:
    return Pod(f"uid-{number}", "a", f"p-{number}", Shape((("cpu", cpu),)), node=node)


@pytest.mark.parametrize("cpu", [1, 2**58, 2**60, LIMIT, 2**70])
def test_columns_saturate_as_they_do_for_each_pod(cpu: int) -> None:
    events: list[Event] = [NodeSet(Node("n", (("cpu", LIMIT),)))]
    events += [PodSet(_pod(number, cpu)) for number in range(20)]
    one, all_at_once = Engine(), Engine()
    pods = PodList(all_at_once)
    with pods.gathering():
        for event in events:
            one.apply(event)
            pods.apply(event)
    assert dict(_told(books(all_at_once))) == dict(_told(books(one)))


def test_slots_that_were_used_before_keep_nothing() -> None:
    engine, rng = Engine(), Random(1)
    engine.apply(NodeSet(Node("n", (("cpu", 10_000), ("memory", 10_000)))))
    first = [Pod(f"{n}", "a", f"{n}", Shape((("memory", n + 1),)), node="n") for n in range(20)]
    engine.load(first)
    for pod in rng.sample(first, 20):
        engine._state.drop_pod(pod.uid)
    engine.load([_pod(number, 5) for number in range(20)])
    fresh = Engine()
    fresh.apply(NodeSet(Node("n", (("cpu", 10_000), ("memory", 10_000)))))
    for number in range(20):
        fresh.apply(PodSet(_pod(number, 5)))
    assert dict(_told(books(engine))) == dict(_told(books(fresh)))


@pytest.mark.parametrize("bad", ["uid-0", 7])
def test_where_one_pod_makes_no_sense_none_is_booked(bad: object) -> None:
    engine = Engine()
    engine.apply(NodeSet(Node("n", (("cpu", 10),))))
    wrong = Pod(bad, "a", "another", Shape((("cpu", 1),)), node="n")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError):
        engine.load([_pod(0, 1), _pod(1, 1), wrong])
    assert engine.pod_count() == 0


def test_of_a_pod_that_comes_twice_the_last_version_counts() -> None:
    engine = Engine()
    engine.apply(NodeSet(Node("n", (("cpu", 10),))))
    engine.load([_pod(0, 1, None), _pod(1, 1), _pod(0, 1)])
    assert engine.booked_node("uid-0") == "n"
    engine.load([_pod(0, 1), _pod(0, 1, None)])
    assert engine.booked_node("uid-0") is None
