"""Node selectors, affinity, taints and tolerations mean what they mean in Kubernetes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.engine.books.nodes import Nodes
from aliquot.engine.columns import Resources
from aliquot.engine.model.node import Node, NodeConstraints, Taint, Toleration
from aliquot.engine.model.selector import Requirement, Term
from aliquot.engine.placement.constraints import (
    NodeRefusal,
    node_refusal,
    preference,
    taint_refusal,
)
from aliquot.engine.placement.preferences import OPEN, NodeFit, NodePreferences

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
    assert taint_refusal(NODE.taints, ())[1] == 1
    assert taint_refusal(NODE.taints, (Toleration("old", "Exists"),))[1] == 0


_KEYS, _VALUES = st.sampled_from("kl"), st.sampled_from(["", "x", "7", "-3", "+7", "1_0"])
_LABEL_SETS = st.dictionaries(_KEYS, _VALUES).map(lambda each: tuple(sorted(each.items())))
_OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Odd"])


def _requirements(
    keys: st.SearchStrategy[str], values: st.SearchStrategy[str]
) -> st.SearchStrategy:
    several = st.lists(values, max_size=2).map(tuple)
    return st.lists(st.builds(Requirement, keys, _OPERATORS, several), max_size=2).map(tuple)


_TERMS = st.builds(
    Term,
    _requirements(_KEYS, _VALUES),
    _requirements(st.sampled_from(["metadata.name", "spec"]), st.sampled_from(["n0", "n1", "7"])),
)
_EFFECTS = st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"])
_TAINTS = st.lists(st.builds(Taint, _KEYS, _VALUES, _EFFECTS), max_size=2).map(tuple)
_TOLERATIONS = st.builds(
    Toleration,
    st.sampled_from(["", "k", "l"]),
    st.sampled_from(["Equal", "Exists", "Odd"]),
    _VALUES,
    st.sampled_from(["", "NoSchedule", "PreferNoSchedule"]),
)
_CONSTRAINTS = st.builds(
    NodeConstraints,
    _LABEL_SETS,
    st.none() | st.lists(_TERMS, max_size=2).map(tuple),
    st.lists(st.tuples(st.integers(1, 100), _TERMS), max_size=2).map(tuple),
    st.lists(_TOLERATIONS, max_size=2).map(tuple),
)


@given(
    wanted=_CONSTRAINTS,
    labels=st.lists(st.tuples(_LABEL_SETS, _TAINTS, st.booleans()), min_size=9, max_size=12),
    changed=st.dictionaries(st.integers(0, 11), st.none() | _LABEL_SETS, max_size=3),
)
def test_a_column_over_all_nodes_says_of_each_what_it_says_of_one(
    wanted: NodeConstraints,
    labels: list[tuple[tuple[tuple[str, str], ...], tuple[Taint, ...], bool]],
    changed: dict[int, tuple[tuple[str, str], ...] | None],
) -> None:
    nodes = Nodes(Resources())
    for i, (given_labels, taints, deleted) in enumerate(labels):
        nodes.set(Node(f"n{i}", (), given_labels, taints, deleted=deleted))
    kept = NodePreferences(nodes)
    kept.of(wanted)
    for i, relabelled in changed.items():
        if relabelled is None:
            nodes.remove(f"n{i}")
        else:
            nodes.set(Node(f"n{i}", (), relabelled))
    one_by_one = [_judged(wanted, nodes.at(slot)) for slot in range(len(nodes.slots))]
    assert _columns(NodePreferences(nodes).of(wanted)) == one_by_one
    assert _columns(kept.of(wanted)) == one_by_one
    assert _columns(kept._computed(wanted)) == one_by_one


def _judged(wanted: NodeConstraints, node: Node | None) -> tuple[int, int, int]:
    """What one node is by these constraints: open or refused, its preference, its soft taints."""
    if node is None:
        return NodeRefusal.GONE, 0, 0
    soft = taint_refusal(node.taints, wanted.tolerations)[1]
    return node_refusal(wanted, node) or OPEN, preference(wanted, node), soft


def _columns(fit: NodeFit) -> list[tuple[int, int, int]]:
    columns = fit.codes.tolist(), fit.preferred.tolist(), fit.soft_taints.tolist()
    return list(zip(*columns, strict=True))
