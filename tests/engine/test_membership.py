"""Which quota a pod belongs to, whatever order quotas and pods come in."""

from itertools import permutations

import pytest

from aliquot.engine.books.membership import Membership
from aliquot.engine.model.events import Event, PodSet, QuotaGone, QuotaSet
from aliquot.engine.model.knobs import Knobs
from aliquot.engine.model.pod import Pod, Shape
from aliquot.engine.model.quota import Quota
from aliquot.engine.state import State


def quota(name: str, *namespaces: str, fallback: bool = False) -> Quota:
    return Quota(name, namespaces=frozenset(namespaces), fallback=fallback)


def pod(namespace: str, named: str | None = None) -> Pod:
    return Pod(f"{namespace}-{named}", namespace, "p", Shape((("cpu", 1),)), quota=named)


def charged(*events: Event) -> dict[str, str | None]:
    """The quota that each pod is charged to, by uid."""
    state = State(Knobs())
    for event in events:
        state.apply(event)
    return {uid: state.ledger.entries[uid].booking.quota for uid in state.pods}


def test_by_name_then_by_namespace_then_nowhere() -> None:
    membership = Membership()
    membership.add(quota("a/q", "a"))
    assert membership.of("a/q", "b") == "a/q"
    assert membership.of(None, "a") == "a/q"
    assert membership.of("missing", "a") == "a/q"
    assert membership.of(None, "b") is None


def test_the_fallback_takes_whoever_names_what_is_not_there() -> None:
    membership = Membership()
    membership.add(quota("a/q", "a"))
    membership.add(quota("x/default", fallback=True))
    assert membership.of("missing", "a") == "x/default"
    assert membership.of(None, "b") == "x/default"
    assert membership.of(None, "a") == "a/q"


CLAIMS = [quota("a/a", "a"), quota("a/z", "a"), quota("b/b", "a"), quota("a/c", "a")]


@pytest.mark.parametrize("order", list(permutations(CLAIMS)))
def test_conflicts_end_the_same_way_in_any_order(order: tuple[Quota, ...]) -> None:
    membership = Membership()
    for each in order:
        membership.add(each)
    winners = []
    for _ in CLAIMS:
        winners.append(membership.of(None, "a"))
        membership.remove(next(each for each in CLAIMS if each.name == winners[-1]))
    assert winners == ["a/a", "a/c", "a/z", "b/b"]
    assert membership.of(None, "a") is None


def test_a_quota_that_moves_takes_along_all_that_is_below_it() -> None:
    state = State(Knobs())

    def used(name: str) -> int:
        return state.ledger.wanted.get(state.resources.row("cpu"), state.tree.slots[name])

    state.apply(QuotaSet(Quota("one")))
    state.apply(QuotaSet(Quota("two")))
    state.apply(QuotaSet(Quota("middle", parent="one")))
    state.apply(QuotaSet(Quota("leaf", parent="middle")))
    state.apply(PodSet(pod("a", "leaf")))
    state.apply(PodSet(pod("b", "middle")))
    assert [used(name) for name in ("one", "two", "middle", "leaf")] == [2, 0, 2, 1]
    state.apply(QuotaSet(Quota("middle", parent="two")))
    assert [used(name) for name in ("one", "two", "middle", "leaf")] == [0, 2, 2, 1]
    state.apply(QuotaSet(Quota("leaf", parent="one")))
    assert [used(name) for name in ("one", "two", "middle", "leaf")] == [1, 1, 1, 1]


def test_pods_move_as_quotas_come_and_go() -> None:
    pods = [PodSet(pod("a")), PodSet(pod("b")), PodSet(pod("a", "late"))]
    default = QuotaSet(quota("x/default", fallback=True))
    of_a = QuotaSet(quota("a/q", "a"))
    late = QuotaSet(quota("late"))
    steps: list[tuple[Event, list[str | None]]] = [
        (of_a, ["a/q", None, "a/q"]),
        (default, ["a/q", "x/default", "x/default"]),
        (late, ["a/q", "x/default", "late"]),
        (QuotaGone("a/q"), ["x/default", "x/default", "late"]),
        (QuotaGone("late"), ["x/default", "x/default", "x/default"]),
        (of_a, ["a/q", "x/default", "x/default"]),
        (QuotaSet(quota("x/default")), ["a/q", None, "a/q"]),
        (default, ["a/q", "x/default", "x/default"]),
        (QuotaGone("x/default"), ["a/q", None, "a/q"]),
    ]
    lived: list[Event] = [*pods]
    for event, membership in steps:
        lived.append(event)
        assert list(charged(*lived).values()) == membership
