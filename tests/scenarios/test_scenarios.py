"""Every scenario file holds: worked examples and rules of the designs, as users can read them."""

from pathlib import Path

import pytest

from aliquot.simulation import scenario
from aliquot.simulation.scenario import Scenario

HERE = Path(__file__).parent
SCENARIOS = scenario.load([str(HERE)])


@pytest.mark.parametrize("each", SCENARIOS, ids=lambda each: each.name)
def test_scenario(each: Scenario) -> None:
    assert scenario.run(each).differences == []


def test_names_are_unique() -> None:
    names = [each.name for each in SCENARIOS]
    assert len(names) == len(set(names))
