"""Pods that may come, as estimates assume them: as often as before, and like those before."""

from random import Random
from statistics import mean, stdev

from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.simulation_annotations import ARRIVAL, DURATION
from aliquot.dialects.core.times import seconds, timestamp
from aliquot.json import Body
from aliquot.questions.arrivals import Arrivals
from aliquot.questions.durations import Durations
from aliquot.questions.moment import Moment
from aliquot.questions.sources.source import Source
from tests.questions.test_explanation import GPU, explain, node, pod, quota

_EVERY = 10


def stream(number: int, gpus: int = 1, runs: int = 5) -> list[Body]:
    """Pods of one team, one every ten seconds, each of which runs for so long."""
    found = []
    for index in range(number):
        body = pod(f"b/s{index}", gpus)
        body["metadata"]["annotations"] = {
            ARRIVAL: f"{_EVERY * index}s",
            DURATION: f"{runs}s",
        }
        found.append(body)
    return found


def coming(
    *objects: Body, seed: int = 1, taken: int | None = None
) -> list[tuple[int | float, str, str | None]]:
    """When pods are assumed to come, what they ask for, and for how long they run."""
    documents = [Document(f"object {number}", body) for number, body in enumerate(objects)]
    simulation = Moment(Source("", documents, taken=taken)).simulation
    found = Arrivals(simulation).coming(Durations(simulation), Random(seed))
    return [
        (
            seconds(change.at - simulation.now),
            each.body["spec"]["containers"][0]["resources"]["limits"][GPU],
            (each.body["metadata"]["annotations"] or {}).get(DURATION),
        )
        for change in found
        for each in change.apply
    ]


def test_pods_come_as_often_as_before_and_run_as_long() -> None:
    waiting = [pod(f"a/w{index}", 9) for index in range(60)]
    for each in waiting:
        each["metadata"]["annotations"] = {ARRIVAL: "295s"}
    found = coming(node("n"), *stream(60), *waiting)
    assert {size for _, size, _ in found} == {"1", "9"}
    assert 750 < found[-1][0] < 1300  # twice as many came, half of them at once
    assert {runs for _, size, runs in found if size == "1"} == {"5s"}


def test_the_time_since_the_last_pod_came_counts_as_well() -> None:
    """Of a cluster that was read an hour after the last of 60 pods had come within ten minutes."""
    pods = [pod(f"b/s{index}", 1, schedulerName="aliquot", nodeName="n") for index in range(60)]
    for index, each in enumerate(pods):
        minute, second = divmod(_EVERY * index, 60)
        each["metadata"]["creationTimestamp"] = f"2026-01-01T12:{minute:02}:{second:02}Z"

    def rate(read_at: str) -> float:
        found = coming(node("n"), *pods, taken=timestamp(read_at, "", ""))
        return len(found) / found[-1][0]

    at_once, later = rate("2026-01-01T12:10:00Z"), rate("2026-01-01T13:10:00Z")
    assert 6 < at_once / later < 8


def test_a_rate_is_not_taken_of_a_few() -> None:
    assert coming(node("n"), *stream(20)) == []
    assert coming(node("n"), *stream(21)) != []


def test_how_often_they_come_and_which_is_as_uncertain_as_what_is_known() -> None:
    """Of 25 known arrivals, a fifth more or fewer; half of them are large."""
    known = [*stream(26)]
    for each in known[::2]:
        each["spec"]["containers"][0]["resources"]["limits"][GPU] = "2"
    documents = [Document(f"object {n}", body) for n, body in enumerate([node("n"), *known])]
    simulation = Moment(Source("", documents)).simulation
    arrivals, durations = Arrivals(simulation), Durations(simulation)
    plays = [[*arrivals.coming(durations, Random(seed))] for seed in range(40)]
    rates = [len(found) / seconds(found[-1].at - simulation.now) * _EVERY for found in plays]
    assert 0.9 < mean(rates) < 1.15
    assert 0.14 < stdev(rates) < 0.32  # of 200 arrivals alone it would be 0.07
    large = [sum("'2'" in str(each.apply[0].body["spec"]) for each in found) for found in plays]
    assert 80 < mean(large) < 120
    assert stdev(large) > 12  # were the mix certain, it would be 7


def test_pods_that_are_there_at_once_are_no_stream() -> None:
    assert coming(node("n"), *(pod(f"b/s{index}", 1) for index in range(50))) == []


def test_workloads_that_keep_replicas_are_no_stream() -> None:
    controller = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "controller": True}
    kept = stream(50)
    for each in kept:
        each["metadata"]["ownerReferences"] = [controller]
    assert coming(node("n"), *kept) == []


def test_an_estimate_counts_with_those_that_come_first() -> None:
    """Small pods of a team that is owed its node keep passing one that needs all of it."""
    small = stream(60, runs=35)
    large = pod("a/x", 4)
    large["metadata"]["annotations"] = {ARRIVAL: "590s"}
    answer = explain("a/x", node("n", 4), quota("a", 0), quota("b", 4), *small, large)
    assert answer["estimate"] is None or answer["estimate"]["seconds"] > 35
    elsewhere = node("m", 4)
    large["spec"]["nodeSelector"] = {"zone": "m"}
    other = pod("c/r", 4, "m")
    other["metadata"]["annotations"] = {"aliquot.dev/expected-duration": "10m"}
    answer = explain(
        "a/x", node("n", 4), elsewhere, quota("a", 9), quota("b", 4), *small, other, large
    )
    assert answer["estimate"]["seconds"] == 10
