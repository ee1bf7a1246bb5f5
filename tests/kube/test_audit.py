"""The check of the ledger finds what is wrong, and nothing where all is well."""

from collections.abc import Callable

import pytest

from aliquot.dialects.nos.cards import Cards
from aliquot.engine.books.ledger import Ledger, Stage
from aliquot.engine.cycle import Engine
from aliquot.engine.model.events import NodeGone, NodeSet, PodSet
from aliquot.engine.model.node import Node
from aliquot.engine.model.pod import Pod, Shape
from aliquot.engine.state import State
from aliquot.kube.api.resource import NODES
from aliquot.kube.intake.objects import Objects
from aliquot.kube.intake.pods import Pods
from aliquot.kube.observe.audit import violations
from aliquot.mirror.mirror import Mirror
from aliquot.mirror.pod_record import PodRecord
from tests.build.engines import books
from tests.kube.test_reading_objects import QUOTAS, watched_node, watched_quota, wire


class Books:
    """A node, a quota, a pod that runs, one that was told to start, and one that waits."""

    def __init__(self) -> None:
        self.engine = Engine()
        self.mirror = Mirror(self.engine.apply, Cards())
        objects, pods = Objects(self.mirror), Pods(self.mirror, {"aliquot"})
        objects.put(NODES, watched_node("n", "3"))
        objects.put(QUOTAS, watched_quota(4))
        objects.settle()
        pods.put(wire("runs", node="n"))
        pods.put(wire("starts"))
        self.engine.cycle()
        pods.put(wire("waits", cpu="9"))
        self.engine.cycle()
        assert self.ledger.entries["uid-starts"].stage is Stage.ASSUMED
        assert list(self.wrong) == []

    @property
    def ledger(self) -> Ledger:
        return self.state.ledger

    @property
    def state(self) -> State:
        return books(self.engine)

    @property
    def wrong(self) -> list[str]:
        return [each for each in violations(self.engine, self.mirror) if each]


def forget(books: Books) -> None:
    books.state.ledger.release("uid-runs")


def move(books: Books) -> None:
    entry = books.state.ledger.entries["uid-runs"]
    entry.booking = entry.booking._replace(node="elsewhere")


def keep(books: Books) -> None:
    books.mirror.records.pop("uid-runs")


def spill(books: Books) -> None:
    books.state.ledger.used.data[0, 0] += 1


@pytest.mark.parametrize(
    ("tamper", "words"),
    [
        (forget, "team-a/runs runs on n, and is not booked"),
        (move, "team-a/runs is booked as"),
        (keep, "uid-runs is booked, and does not run"),
        (spill, "add up to"),
    ],
)
def test_what_is_wrong_is_found(tamper: Callable[[Books], None], words: str) -> None:
    books = Books()
    tamper(books)
    assert any(words in each for each in books.wrong), books.wrong


def test_a_pod_whose_node_is_gone_is_charged_as_before() -> None:
    """By the class of the node that it had, which nobody knows any longer."""
    card = (("gpu", 1), ("pods", 1))
    by_class = (("", (*card, ("memory", 32))), ("80GB", (*card, ("memory", 80))))
    pod = Pod("p", "a", "p", Shape(card, charges=by_class), node="n")
    mirror, engine = Mirror(lambda event: None, Cards()), Engine()
    mirror.add(PodRecord(pod, {}, "Running"))
    engine.apply(NodeSet(Node("n", (("gpu", 2), ("pods", 9)), node_class="80GB")))
    engine.apply(PodSet(pod))
    engine.apply(NodeGone("n"))
    engine.cycle(1)
    assert not any(violations(engine, mirror))


def test_a_wrong_sum_is_named_with_its_node_or_quota() -> None:
    books = Books()
    state, ledger = books.state, books.ledger
    row = state.resources.row("cpu")
    ledger.taken.data[row, state.nodes.slots["n"]] += 1
    ledger.used.data[row, state.tree.slots["team-a/quota"]] += 1
    places = [each.partition(" is ")[0] for each in books.wrong]
    assert places == ["used of cpu at team-a/quota", "taken of cpu at n"]
