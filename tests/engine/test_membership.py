"""Which quota a pod belongs to, whatever order quotas and pods come in."""

from itertools import permutations
from typing import Any

import pytest

from aliquot.engine.books.membership import Membership
from aliquot.engine.model.events import Event, PodSet, QuotaGone, QuotaSet
from aliquot.engine.model.knobs import Knobs
from aliquot.engine.model.quota import Quota
from aliquot.engine.state import State
from aliquot.engine.updates import apply_event
from tests.build.values import amounts, pod_set, quota_set

CPU = amounts(cpu=1)


def quota_of(name: str, *namespaces: str, **more: Any) -> QuotaSet:
    """A quota of these namespaces, whatever its name."""
    return quota_set(name, namespaces=frozenset(namespaces), **more)


def naming(named: str | None, namespace: str) -> PodSet:
    """A pod that names a quota, or none."""
    return pod_set("p", CPU, namespace, uid=f"{namespace}-{named}", quota=named)


def charged(*events: Event) -> dict[str, str | None]:
    """The quota that each pod is charged to, by uid."""
    state = State(Knobs())
    for event in events:
        apply_event(state, event)
    return {uid: state.ledger.entries[uid].booking.quota for uid in state.pods}


def test_a_pod_belongs_to_the_quota_it_names_then_to_its_namespaces_then_to_none() -> None:
    membership = Membership()
    membership.add(quota_of("a/q", "a").quota)
    assert membership.of("a/q", "b") == "a/q"
    assert membership.of(None, "a") == "a/q"
    assert membership.of("missing", "a") == "a/q"
    assert membership.of(None, "b") is None


def test_the_fallback_takes_the_pods_that_name_a_missing_quota_or_have_none() -> None:
    membership = Membership()
    membership.add(quota_of("a/q", "a").quota)
    membership.add(quota_of("x/default", fallback=True).quota)
    assert membership.of("missing", "a") == "x/default"
    assert membership.of(None, "b") == "x/default"
    assert membership.of(None, "a") == "a/q"


CLAIMS = [quota_of(name, "a").quota for name in ("a/a", "a/z", "b/b", "a/c")]


@pytest.mark.parametrize("order", list(permutations(CLAIMS)))
def test_a_namespace_that_several_quotas_claim_is_given_out_in_the_same_order(
    order: tuple[Quota, ...],
) -> None:
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

    apply_event(state, quota_of("one"))
    apply_event(state, quota_of("two"))
    apply_event(state, quota_of("middle", parent="one"))
    apply_event(state, quota_of("leaf", parent="middle"))
    apply_event(state, naming("leaf", "a"))
    apply_event(state, naming("middle", "b"))
    assert [used(name) for name in ("one", "two", "middle", "leaf")] == [2, 0, 2, 1]
    apply_event(state, quota_of("middle", parent="two"))
    assert [used(name) for name in ("one", "two", "middle", "leaf")] == [0, 2, 2, 1]
    apply_event(state, quota_of("leaf", parent="one"))
    assert [used(name) for name in ("one", "two", "middle", "leaf")] == [1, 1, 1, 1]


def test_pods_are_charged_anew_as_quotas_come_and_go() -> None:
    pods = [naming(None, "a"), naming(None, "b"), naming("late", "a")]
    default = quota_of("x/default", fallback=True)
    of_a = quota_of("a/q", "a")
    late = quota_of("late")
    steps: list[tuple[Event, list[str | None]]] = [
        (of_a, ["a/q", None, "a/q"]),
        (default, ["a/q", "x/default", "x/default"]),
        (late, ["a/q", "x/default", "late"]),
        (QuotaGone("a/q"), ["x/default", "x/default", "late"]),
        (QuotaGone("late"), ["x/default", "x/default", "x/default"]),
        (of_a, ["a/q", "x/default", "x/default"]),
        (quota_of("x/default"), ["a/q", None, "a/q"]),
        (default, ["a/q", "x/default", "x/default"]),
        (QuotaGone("x/default"), ["a/q", None, "a/q"]),
    ]
    lived: list[Event] = [*pods]
    for event, membership in steps:
        lived.append(event)
        assert list(charged(*lived).values()) == membership
