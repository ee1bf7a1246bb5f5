"""Which nodes take a pod, which plugin refuses it on the others, and which it prefers.

As kube-scheduler says, in every fact: wrong answers are none.
"""

from collections import Counter

import pytest

from tests.placement.facts import Fact, cluster, facts

_PARTS = 15
"""In so many parts the facts are looked at, side by side."""
_SCORED = ("InterPodAffinity", "NodeAffinity", "PodTopologySpread", "TaintToleration")
_FEWEST = 20


@pytest.mark.parametrize("part", range(_PARTS))
def test_nodes_are_refused_by_the_plugins_that_refuse_them(part: int) -> None:
    wrong = {}
    for fact in facts()[part::_PARTS]:
        engine, _ = cluster(fact)
        refused, scores = engine.node_refusals(fact.pod), engine.preferences(fact.pod)
        if refused != fact.refused:
            wrong[fact.number] = f"refused by {refused}, not by {fact.refused}"
        elif sorted(scores) != sorted(fact.feasible):
            wrong[fact.number] = f"feasible are {sorted(scores)}, not {sorted(fact.feasible)}"
        elif differences := _scored_otherwise(fact, scores):
            wrong[fact.number] = ", ".join(differences)
    assert wrong == {}


def _scored_otherwise(fact: Fact, scores: dict[str, dict[str, int]]) -> list[str]:
    """The plugins whose normalised scores differ; one with nothing to say scores nodes alike."""
    return [
        plugin
        for plugin in _SCORED
        if fact.scores
        and _normalised(scores, plugin, fact.feasible)
        != _normalised(
            {
                node: {each: pair[1] for each, pair in said.items() if each in _SCORED}
                for node, said in fact.scores.items()
            },
            plugin,
            fact.feasible,
        )
    ]


def _normalised(
    scores: dict[str, dict[str, int]], plugin: str, nodes: list[str]
) -> dict[str, int | None]:
    found = {node: scores[node].get(plugin) for node in nodes}
    return {} if len(set(found.values())) == 1 else found


def test_every_feature_occurs() -> None:
    uses = Counter(each for fact in facts() for each in fact.uses)
    decides = Counter(each for fact in facts() for each in fact.decides)
    assert len(uses) == 55
    assert {each: number for each, number in uses.items() if number < _FEWEST} == {}
    without = {each for each in uses if decides[each] < _FEWEST}
    assert {each for each in without if not each.startswith("selector-")} == set()
