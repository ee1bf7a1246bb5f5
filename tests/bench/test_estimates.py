"""What the benchmark of estimates counts, and which pods it asks about."""

import pytest

from aliquot.bench.estimates import Asked, figures, play
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.simulation_annotations import ARRIVAL, DURATION
from aliquot.questions.sources.source import Source
from tests.questions.test_explanation import node, pod


def test_a_range_holds_the_truth_with_its_bounds() -> None:
    """Of five, one started before its range, one after; two were told just the bound."""
    asked = [Asked(20, 10, 30, 100, truth) for truth in (9, 10, 20, 30, 31)]
    found = {each.what: each.value for each in figures(asked, 2)}
    assert found["pods asked about"] == 5
    assert found["without an estimate"] == 2
    assert found["p10 to p90 holds the truth, at least"] == pytest.approx(60)
    assert found["started before p10"] == found["started after p90"] == pytest.approx(20)
    assert found["mean error"] == pytest.approx(42 / 5)
    ratio = found["mean error, in ratio to that of the mean past wait"]
    assert ratio == pytest.approx(42 / 400)


def test_of_a_stream_pods_are_judged_that_wait_between_its_beginning_and_its_end() -> None:
    """One node, which each pod keeps for ten seconds; one comes every nine seconds."""
    bodies = [node("n", 1), *(pod(f"b/s{index}", 1) for index in range(60))]
    for index, body in enumerate(bodies[1:]):
        body["metadata"]["annotations"] = {ARRIVAL: f"{9 * index}s", DURATION: "10s"}
    documents = [Document(f"object {number}", body) for number, body in enumerate(bodies)]
    asked, unknown = play(Source("", documents), warm_up=30, every=1, judged=40)
    assert unknown == 0
    assert [each.truth for each in asked] == list(range(30, 40))
    assert all(each.naive < each.truth for each in asked)  # it knows of shorter waits alone
    assert all(each.low <= each.truth <= each.high for each in asked)
