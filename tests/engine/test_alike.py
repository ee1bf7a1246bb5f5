"""Pods that are alike: how many of them a victim search looks at, and which."""

import pytest

from aliquot.engine.books.kinds import Kinds
from aliquot.engine.cycle import Engine
from aliquot.engine.model.decisions import evictions
from aliquot.engine.model.events import PodGone
from aliquot.engine.reclaim import search, victim_set
from aliquot.engine.reclaim.alike import first, groups, most_needed
from tests.build.engines import books
from tests.build.values import node_set, pod_set, quota_set


def lent(pods: int = 6) -> Engine:
    """Team a fills a node with pods of one GPU, that team b is guaranteed."""
    engine = Engine()
    engine.apply(node_set("n", pods))
    engine.apply(quota_set("a/q", 0))
    engine.apply(quota_set("b/q", pods))
    for number in range(pods):
        engine.apply(pod_set(f"a-{number}", 1, "a", node="n", created=number // 2))
    return engine


def grouped(engine: Engine) -> list[list[str]]:
    state = books(engine)
    running = state.bound_pods
    found = groups(state, range(len(running)), running.priority)
    return sorted(sorted(str(running.slots.names[slot]) for slot in each) for each in found)


def test_pods_are_alike_that_differ_in_age_and_name_alone() -> None:
    engine = lent(3)
    names = [str(books(engine).bound_pods.slots.names[slot]) for slot in range(3)]
    assert grouped(engine) == [sorted(names)]
    engine.apply(pod_set("large", 2, "a", node="n"))
    engine.apply(pod_set("important", 1, "a", node="n", priority=5))
    engine.apply(pod_set("others", 1, "b", node="n"))
    assert len(grouped(engine)) == 4


def test_the_youngest_come_first_and_of_those_the_last_by_name() -> None:
    engine = lent(6)
    state = books(engine)
    (group,) = groups(state, range(6), state.bound_pods.priority)
    named = [state.pods[str(state.bound_pods.slots.names[slot])].name for slot in group]
    assert sorted(named) == [f"a-{number}" for number in range(6)]
    chosen = [str(state.bound_pods.slots.names[slot]) for slot in first(state, group, 3)]
    assert [state.pods[uid].name for uid in chosen] == ["a-5", "a-4", "a-3"]


@pytest.mark.parametrize(
    ("frees", "needs", "most"),
    [
        ({"room": 2}, {"room": 5}, 3),
        ({"room": 2, "right": 1}, {"room": 2, "right": 4}, 4),
        ({"room": 2}, {"right": 4}, 0),
        ({"room": 0}, {"room": 4}, 0),
    ],
)
def test_no_more_are_needed_than_free_all_by_themselves(
    frees: dict[object, int], needs: dict[object, int], most: int
) -> None:
    assert most_needed(frees, needs) == most


def test_a_search_prices_few_of_many_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    priced: list[tuple[str, ...]] = []
    price = victim_set.price

    def noted(pods, *rest):  # type: ignore[no-untyped-def]
        priced.append(tuple(pod.name for pod in pods))
        return price(pods, *rest)

    monkeypatch.setattr(search, "price", noted)
    engine = lent(60)
    engine.apply(pod_set("b", 2, "b"))
    victims = sorted(each.pod.name for each in evictions(engine.cycle()))
    assert victims == ["a-58", "a-59"]
    assert len(set(priced)) <= 4


def test_kinds_are_forgotten_with_their_last_pod() -> None:
    engine = lent(4)
    kinds = books(engine).bound_pods._kinds
    assert len(kinds) == 1
    for uid in list(books(engine).bound_pods.slots):
        engine.apply(PodGone(uid))
    assert len(kinds) == 0
    counted = Kinds()
    one, two = counted.join("one"), counted.join("two")
    assert counted.join("one") == one != two
    counted.leave(one)
    assert counted.join("one") == one
    counted.leave(one)
    counted.leave(one)
    assert counted.join("one") not in (one, two), "a number is never another kind's"
