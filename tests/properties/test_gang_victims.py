"""Victims where gangs run, against brute force over all sets that leave gangs whole or working."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.campaign import examples
from tests.properties.gang_rules import FairGangRules, GangCase, GangRules, gang_cases, play

RULES = {"capacity": GangRules, "fair": FairGangRules}


@settings(deadline=None, max_examples=examples(200))
@given(gang_cases(), st.sampled_from(sorted(RULES)))
def test_the_victims_are_as_good_as_the_best_of_all_sets(case: GangCase, policy: str) -> None:
    rules = RULES[policy](case)
    best = rules.best()
    gone, node = play(case, policy)
    assert rules.leaves_gangs(gone)
    assert (node is not None) == (best is not None)
    assert rules.cost(gone) == (best if best is not None else rules.cost(()))
