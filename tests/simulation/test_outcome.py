"""How queues and gangs are written in results, and compared with what a scenario expects."""

from fractions import Fraction
from typing import Any

from aliquot.dialects.core.manifest import convert
from aliquot.engine.model.summaries import GangSummary, NamespaceFigures, QueueSummary
from aliquot.simulation.comparison import compare
from aliquot.simulation.expectation import Expect, Why
from aliquot.simulation.outcome import Result, gangs, queue

GPU = "nvidia.com/gpu"
QUEUE = QueueSummary(
    "q",
    3,
    {"cpu": 2500, GPU: 4},
    {"cpu": 2000, GPU: 3},
    {
        "b": NamespaceFigures(1, Fraction(0), {}),
        "a": NamespaceFigures(2, Fraction(1, 3), {"cpu": 2000, GPU: 3}),
    },
)
GANGS = [GangSummary("a/g-10", "Pending", 2, 0), GangSummary("a/g-9", "Running", 2, 3)]


def different(**expected: Any) -> list[str]:
    result: Result = {"pods": [], "pending": [], "bindings": [], "quotas": []}
    result |= {"queues": [queue(QUEUE)], "gangs": gangs(GANGS), "gpuQuotas": []}
    return list(compare(convert(expected, Expect, "test"), result, []))


def test_a_queue_in_results_has_its_shares_and_namespaces() -> None:
    assert queue(QUEUE) == {
        "name": "q",
        "weight": 3,
        "deserved": {"cpu": "2500m", GPU: "4"},
        "used": {"cpu": "2", GPU: "3"},
        "namespaces": {
            "a": {"weight": 2, "share": 0.333333, "used": {"cpu": "2", GPU: "3"}},
            "b": {"weight": 1, "share": 0.0, "used": {}},
        },
    }
    assert list(queue(QUEUE)["namespaces"]) == ["a", "b"]


def test_gangs_are_in_natural_order() -> None:
    assert gangs(GANGS) == [
        {"name": "a/g-9", "phase": "Running", "minMember": 2, "running": 3},
        {"name": "a/g-10", "phase": "Pending", "minMember": 2, "running": 0},
    ]


def test_what_a_scenario_does_not_list_is_not_looked_at() -> None:
    inside = {"a": {"share": 0.333333, "used": {GPU: 3}}, "b": {"weight": 1}}
    assert different(queues={"q": {"weight": 3, "deserved": {"cpu": 2.5}}}) == []
    assert different(queues={"q": {"namespaces": inside}}, gangs={"a/g-9": {"running": 3}}) == []


def test_a_queue_or_gang_that_differs_is_named() -> None:
    expected = {
        "q": {"weight": 4, "used": {GPU: 4}, "namespaces": {"a": {"used": {"cpu": 1}}, "c": {}}},
        "r": {},
    }
    assert different(queues=expected, gangs={"a/g-10": {"phase": "Running", "minMember": 2}}) == [
        "queue q: weight should be 4, is 3",
        f"queue q: used {GPU} should be 4, is 3",
        "queue q: namespaces a used cpu should be 1, is 2",
        "queue q: namespaces c should be empty, is none",
        "queue r is not there",
        "gang a/g-10: phase should be Running, is Pending",
    ]


def test_why_pods_were_evicted_is_compared_where_a_scenario_says_it() -> None:
    result: Result = {"pods": [], "pending": [], "bindings": [], "quotas": [], "queues": []}
    result |= {"gangs": [], "gpuQuotas": []}
    gone = [{"pod": "a/p", "reason": "Recycled", "message": "quota a uses 2 cpu, runtime 1"}]

    def different(evicted: Any) -> list[str]:
        return list(compare(Expect(evicted=evicted), result, gone))

    was = "was evicted for Recycled (quota a uses 2 cpu, runtime 1)"
    assert different(["a/p"]) == []
    assert different({"a/p": "Recycled"}) == []
    assert different({"a/p": Why("Recycled", "runtime 1")}) == []
    assert different({"a/p": "FairShare"}) == [f"a/p should be evicted for FairShare, {was}"]
    assert different({"a/p": Why(message="3")}) == [f"a/p should be evicted for '3', {was}"]
    assert different({"a/q": "Recycled"}) == ["evicted should be a/q, is a/p"]
