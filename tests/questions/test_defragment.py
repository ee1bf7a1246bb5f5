"""`what-if --defragment`: the moves it names are the fewest, and let the pod start."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import aliquot
from aliquot.dialects.core.documents import Document
from aliquot.errors import ArgumentError
from aliquot.json import Body
from aliquot.questions.defragment import defragment
from aliquot.questions.sources.source import Source
from tests.campaign import examples

CARDS = 4
small = st.integers(1, 3)
clusters = st.lists(
    st.lists(small, max_size=3).filter(lambda n: sum(n) <= CARDS), min_size=2, max_size=4
)
"""Of each node, the cards that its pods hold."""


def node(name: str) -> Body:
    has = {"cpu": "64", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": str(CARDS)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": has},
    }


def pod(name: str, cards: int, on: str | None = None, **more: object) -> Body:
    limits = {"nvidia.com/gpu": cards} if cards else {}
    container = {"name": "c", "image": "i", "resources": {"limits": limits}}
    spec = {"containers": [container], **({"nodeName": on} if on else {}), **more}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "x"},
        "spec": spec,
    }


def source(bodies: list[Body]) -> Source:
    documents = [Document(f"object {number}", each) for number, each in enumerate(bodies)]
    return Source("test", documents, policy="capacity")


def cluster(held: list[list[int]]) -> list[Body]:
    bodies = [node(f"n-{number}") for number in range(len(held))]
    for number, pods in enumerate(held):
        bodies += [pod(f"p-{number}-{i}", cards, f"n-{number}") for i, cards in enumerate(pods)]
    return bodies


def moved(bodies: list[Body], moves: list[dict[str, str]]) -> list[Body]:
    """The objects once the pods have moved."""
    to = {each["pod"].removeprefix("x/"): each["to"] for each in moves}
    return [
        {**each, "spec": {**each["spec"], "nodeName": to[each["metadata"]["name"]]}}
        if each["metadata"]["name"] in to
        else each
        for each in bodies
    ]


@given(clusters, st.integers(2, CARDS))
@settings(max_examples=examples(60), deadline=None)
def test_moves_let_the_pod_start(held: list[list[int]], asks: int) -> None:
    bodies = [*cluster(held), pod("big", asks)]
    if any(CARDS - sum(each) >= asks for each in held):
        return
    answer = defragment(source(bodies), "x/big")
    if single_move(held, asks):
        assert len(answer["moves"]) == 1
    if answer["why"] is not None:
        assert not answer["moves"]
        return
    result = aliquot.simulate(moved(bodies, answer["moves"]))
    assert result["bindings"] == [{"at": 0, "pod": "x/big", "node": answer["node"]}]
    assert not result["evictions"]


def single_move(held: list[list[int]], asks: int) -> bool:
    """Would it do to move one pod?"""
    left = [CARDS - sum(each) for each in held]
    return any(
        left[here] + cards >= asks and left[there] >= cards
        for here, pods in enumerate(held)
        for cards in pods
        for there in range(len(held))
        if there != here
    )


def test_several_moves_where_one_will_not_do() -> None:
    bodies = [*cluster([[1, 1], [1, 2], [1, 2]]), pod("big", CARDS)]
    answer = defragment(source(bodies), "x/big")
    assert answer["node"] == "n-0"
    assert [each["pod"] for each in answer["moves"]] == ["x/p-0-0", "x/p-0-1"]
    assert sorted(each["to"] for each in answer["moves"]) == ["n-1", "n-2"]


def test_a_pod_that_may_run_nowhere_else_does_not_move() -> None:
    bodies = [*cluster([[1], [2]]), pod("big", CARDS)]
    bodies[2]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n-0"}
    answer = defragment(source(bodies), "x/big")
    assert [each["pod"] for each in answer["moves"]] == ["x/p-1-0"]


def test_no_pod_is_evicted_for_a_move() -> None:
    """The pod that would have to move is important enough to evict another: no answer."""
    bodies = [*cluster([[3], [4]]), pod("big", CARDS)]
    bodies[2]["spec"]["priority"] = 1000
    bodies[-1]["spec"]["preemptionPolicy"] = "Never"
    answer = defragment(source(bodies), "x/big")
    assert answer["moves"] == []
    assert "no set of at most 8 moves" in answer["why"]


@pytest.mark.parametrize(
    ("path", "problem"),
    [("x/none", "there is no pod x/none"), ("x/p-0-0", "pod x/p-0-0 is Running")],
)
def test_what_makes_no_sense_is_refused(path: str, problem: str) -> None:
    with pytest.raises(ArgumentError, match=problem):
        defragment(source(cluster([[1], [2]])), path)
