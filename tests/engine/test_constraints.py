"""Node selectors, affinity, taints and tolerations mean what they mean in Kubernetes."""

import pytest

from aliquot.engine.model.node import Node, NodeConstraints, Taint, Toleration
from aliquot.engine.model.selector import Requirement, Term
from aliquot.engine.placement.constraints import NodeRefusal, node_refusal, preference, soft_taints

NODE = Node(
    "n1",
    (),
    labels=(("cores", "64"), ("model", "a100"), ("zone", "x")),
    taints=(Taint("gpu", "yes", "NoSchedule"), Taint("old", "", "PreferNoSchedule")),
)
TOLERANT = (Toleration("gpu", "Equal", "yes"),)


def line(key: str, operator: str, *values: str) -> Term:
    return Term((Requirement(key, operator, values),))


@pytest.mark.parametrize(
    ("term", "matches"),
    [
        (line("zone", "In", "x", "y"), True),
        (line("zone", "In", "y"), False),
        (line("zone", "NotIn", "y"), True),
        (line("absent", "NotIn", "y"), True),
        (line("absent", "In", "y"), False),
        (line("model", "Exists"), True),
        (line("absent", "Exists"), False),
        (line("absent", "DoesNotExist"), True),
        (line("model", "DoesNotExist"), False),
        (line("cores", "Gt", "32"), True),
        (line("cores", "Gt", "64"), False),
        (line("cores", "Lt", "65"), True),
        (line("model", "Gt", "1"), False),
        (line("cores", "Gt"), False),
        (Term(), False),
        (Term(fields=(Requirement("metadata.name", "In", ("n1",)),)), True),
        (Term(fields=(Requirement("metadata.name", "NotIn", ("n1",)),)), False),
    ],
)
def test_terms(term: Term, matches: bool) -> None:
    where = NodeConstraints(required=(term,), tolerations=TOLERANT)
    assert (node_refusal(where, NODE) is None) == matches
    assert preference(NodeConstraints(preferred=((7, term),)), NODE) == (7 if matches else 0)


def test_one_required_term_is_enough_and_none_matches_nothing() -> None:
    bookings = (line("zone", "In", "y"), line("zone", "In", "x"))
    assert node_refusal(NodeConstraints(required=bookings, tolerations=TOLERANT), NODE) is None
    assert (
        node_refusal(NodeConstraints(required=(), tolerations=TOLERANT), NODE)
        == NodeRefusal.SELECTOR
    )


def test_selectors_are_exact() -> None:
    assert (
        node_refusal(NodeConstraints(selector=(("zone", "x"),), tolerations=TOLERANT), NODE) is None
    )
    assert (
        node_refusal(NodeConstraints(selector=(("zone", "y"),), tolerations=TOLERANT), NODE)
        == NodeRefusal.SELECTOR
    )


@pytest.mark.parametrize(
    ("toleration", "passes"),
    [
        (Toleration("gpu", "Equal", "yes"), True),
        (Toleration("gpu", "Equal", "yes", "NoSchedule"), True),
        (Toleration("gpu", "Equal", "yes", "NoExecute"), False),
        (Toleration("gpu", "Equal", "no"), False),
        (Toleration("gpu", "Exists"), True),
        (Toleration("cpu", "Exists"), False),
        (Toleration("", "Exists"), True),
        (Toleration("", "Exists", effect="NoExecute"), False),
    ],
)
def test_tolerations(toleration: Toleration, passes: bool) -> None:
    where = NodeConstraints(tolerations=(toleration,))
    assert node_refusal(where, NODE) == (None if passes else NodeRefusal.TAINT)


def test_disliked_taints_keep_nobody_away() -> None:
    assert soft_taints(NodeConstraints(), NODE) == 1
    assert soft_taints(NodeConstraints(tolerations=(Toleration("old", "Exists"),)), NODE) == 0
