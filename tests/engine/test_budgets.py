"""The books of disruption budgets: as if each were compared with each pod, at the cost of few."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.engine import Budget, LabelIndex, Pod, Requirement, requirement_matches
from aliquot.engine.books import budgets as book
from aliquot.engine.books.budgets import Budgets
from aliquot.engine.model import label_index
from tests.build.values import pod

_LABELS = st.dictionaries(st.sampled_from("kl"), st.sampled_from("xyz"), max_size=2)
_REQUIREMENTS = st.builds(
    Requirement,
    st.sampled_from("kl"),
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    st.lists(st.sampled_from("xyz"), max_size=2).map(tuple),
)
_SELECTORS = st.lists(_REQUIREMENTS, max_size=2).map(tuple)


def pods_with(labels: list[dict[str, str]]) -> list[Pod]:
    return [pod(f"p{i}", labels=tuple(sorted(each.items()))) for i, each in enumerate(labels)]


def selects(budget: Budget, each: Pod) -> bool:
    labels = dict(each.labels)
    found = [requirement_matches(one, labels) for one in budget.selector]
    return bool(labels and found) and all(found) and each.name not in budget.disrupted


@given(
    labels=st.lists(_LABELS, min_size=1, max_size=4),
    selectors=st.lists(_SELECTORS, max_size=5),
    allowed=st.lists(st.integers(0, 2), min_size=5, max_size=5),
    evicted=st.lists(st.integers(0, 3), max_size=4),
    removed=st.integers(0, 9),
)
def test_what_is_left_for_a_pod_is_the_least_of_all_its_budgets(
    labels: list[dict[str, str]],
    selectors: list[tuple[Requirement, ...]],
    allowed: list[int],
    evicted: list[int],
    removed: int,
) -> None:
    pods = pods_with(labels)
    books = Budgets(lambda _: pods)
    all_budgets = [
        Budget("a", f"b{i}", allowed[i], selector, frozenset({"p0"} if i == 1 else ()))
        for i, selector in enumerate(selectors)
    ]
    for budget in all_budgets:
        books.set(budget)
    if removed < len(all_budgets):
        books.remove(all_budgets.pop(removed).path)
    for each in pods:
        books.note(each)
    gone = [pods[i] for i in evicted if i < len(pods)]
    for each in gone:
        books.spend(each)
    left = {
        budget.path: budget.allowed - sum(selects(budget, each) for each in gone)
        for budget in all_budgets
    }
    for each in pods:
        mine = [left[budget.path] for budget in all_budgets if selects(budget, each)]
        assert bool(books.on(each)) == bool(mine)
        if mine:
            assert min(map(books.left, books.on(each))) == max(min(mine), 0)
        assert books.exhausted(each) == any(one <= 0 for one in mine)


def test_a_budget_that_only_one_of_two_pods_has_counts_for_it_alone() -> None:
    both, one = Requirement("app", "Exists"), Requirement("app", "In", ("x",))
    pods = pods_with([{"app": "x"}, {"app": "y"}])
    books = Budgets(lambda _: pods)
    books.set(Budget("a", "both", 2, (both,)))
    books.set(Budget("a", "one", 1, (one,)))
    assert books.on(pods[0]) == ("a/both", "a/one")
    assert books.on(pods[1]) == ("a/both",)


def test_of_very_many_budgets_one_that_is_exhausted_always_counts() -> None:
    pods = pods_with([{f"l{i}": "x" for i in range(40)}, {f"l{i}": "x" for i in range(20)}])
    books = Budgets(lambda _: pods)
    for i in range(40):
        books.set(Budget("a", f"b{i:02}", 1 if i == 19 else 2, (Requirement(f"l{i}", "Exists"),)))
    books.set(Budget("a", "far", 1, (Requirement("l39", "Exists"), Requirement("l38", "Exists"))))
    assert len(books.on(pods[1])) <= book._MOST_COUNTED
    assert not books.exhausted(pods[1])
    books.spend(pods[0])
    assert books.exhausted(pods[0])
    assert books.exhausted(pods[1])


def test_each_set_of_labels_is_compared_once_and_with_few(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Requirement] = []

    def counted(requirement: Requirement, labels: dict[str, str]) -> bool:
        compared.append(requirement)
        return requirement_matches(requirement, labels)

    monkeypatch.setattr(label_index, "requirement_matches", counted)
    index: LabelIndex[int] = LabelIndex()
    for i in range(1_000):
        index.add(i, (Requirement("app", "In", (f"a{i % 100}",)),))
    for _ in range(50):
        assert list(index.matching((("app", "a7"),))) == list(range(7, 1_000, 100))
    assert len(compared) == 10
