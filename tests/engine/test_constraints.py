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


def term_of(key: str, operator: str, *values: str) -> Term:
    return Term((Requirement(key, operator, values),))


@pytest.mark.parametrize(
    ("term", "matches"),
    [
        (term_of("zone", "In", "x", "y"), True),
        (term_of("zone", "In", "y"), False),
        (term_of("zone", "NotIn", "y"), True),
        (term_of("absent", "NotIn", "y"), True),
        (term_of("absent", "In", "y"), False),
        (term_of("model", "Exists"), True),
        (term_of("absent", "Exists"), False),
        (term_of("absent", "DoesNotExist"), True),
        (term_of("model", "DoesNotExist"), False),
        (term_of("cores", "Gt", "32"), True),
        (term_of("cores", "Gt", "64"), False),
        (term_of("cores", "Lt", "65"), True),
        (term_of("model", "Gt", "1"), False),
        (term_of("cores", "Gt"), False),
        (Term(), False),
        (Term(fields=(Requirement("metadata.name", "In", ("n1",)),)), True),
        (Term(fields=(Requirement("metadata.name", "NotIn", ("n1",)),)), False),
    ],
)
def test_a_term_matches_as_its_operator_says(term: Term, matches: bool) -> None:
    constraints = NodeConstraints(required=(term,), tolerations=TOLERANT)
    assert (node_refusal(constraints, NODE) is None) == matches
    assert preference(NodeConstraints(preferred=((7, term),)), NODE) == (7 if matches else 0)


def test_one_required_term_is_enough_and_no_terms_match_no_node() -> None:
    terms = (term_of("zone", "In", "y"), term_of("zone", "In", "x"))
    assert node_refusal(NodeConstraints(required=terms, tolerations=TOLERANT), NODE) is None
    assert (
        node_refusal(NodeConstraints(required=(), tolerations=TOLERANT), NODE)
        == NodeRefusal.SELECTOR
    )


def test_a_node_selector_needs_the_exact_value() -> None:
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
def test_a_toleration_matches_by_key_value_and_effect(toleration: Toleration, passes: bool) -> None:
    constraints = NodeConstraints(tolerations=(toleration,))
    assert node_refusal(constraints, NODE) == (None if passes else NodeRefusal.TAINT)


def test_a_prefer_no_schedule_taint_is_counted_and_bars_no_pod() -> None:
    assert soft_taints(NodeConstraints(), NODE) == 1
    assert soft_taints(NodeConstraints(tolerations=(Toleration("old", "Exists"),)), NODE) == 0
