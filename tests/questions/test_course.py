"""The course of a simulation: means and sums of parts of time, from lives of pods and nodes."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from aliquot.json import Body
from aliquot.questions.plays.comparison import Play, Side, measured, play
from aliquot.questions.plays.course import Parts, course, main_resource
from aliquot.questions.plays.lives import Lives
from aliquot.questions.sources.origin import read_files
from tests.build.manifests import limited_pod, quota, ready_node, timeline
from tests.questions.test_sources import dump

MINUTE = 60 * 10**9


def run(folder: Any, bodies: Sequence[Body], until: int | None = None) -> Play:
    source = read_files((str(dump(folder, list(bodies))),))
    return play(Side("it", source), until, Lives(sampled=True))


def timed(path: str, gpus: int, arrival: str = "0s", duration: str = "") -> Body:
    times = {"sim.aliquot.dev/arrival": arrival}
    if duration:
        times["sim.aliquot.dev/duration"] = duration
    return limited_pod(path, gpus, annotations=times)


def test_a_part_has_the_mean_of_what_held_in_it() -> None:
    parts = Parts(100, 4)
    assert parts.edges == [0, 25, 50, 75, 100]
    spans = [(0, 50, 2.0), (40, 60, 5.0), (90, 100, 1.0), (30, 30, 9.0)]
    assert parts.means(spans) == [2.0, 4.0, 2.0, 0.4]
    assert sum(parts.means(spans)) * 25 == sum((b - a) * n for a, b, n in spans)


def test_sums_are_of_moments_the_last_one_included() -> None:
    assert Parts(100, 4).sums([(0, 1), (24, 1), (25, 2), (100, 5)]) == [2, 2, 0, 5]
    assert Parts(0).means([(0, 0, 1.0)]) == []
    assert Parts(0).sums([(0, 1.0)]) == []


def test_lengths_that_do_not_divide_leave_nothing_out() -> None:
    parts = Parts(7, 3)
    means, edges = parts.means([(0, 7, 1.0)]), parts.edges
    assert means == [1.0, 1.0, 1.0]
    assert edges[-1] == 7


def test_teams_nodes_and_evictions_over_time(tmp_path: Any) -> None:
    """A borrower fills the node; after half of the time the owner takes back half of it."""
    found = run(
        tmp_path,
        [
            ready_node("n", gpu=4),
            quota("owner", {"gpu": 2}),
            quota("borrower", {"gpu": 2}),
            *(timed(f"borrower/p-{n}", 1) for n in range(4)),
            timed("owner/g", 2, arrival="1h", duration="1h"),
        ],
    )
    said = course(found, main_resource([found]))
    assert (said["resource"], said["end"]) == ("nvidia.com/gpu", 7200)
    assert said["used"]["borrower"] == [4.0] * 60 + [2.0] * 60
    assert said["used"]["owner"] == [0.0] * 60 + [2.0] * 60
    assert said["capacity"] == [4.0] * 120
    assert said["nodes"] == {"n": [1.0] * 120}
    assert sum(said["evictions"]["ReclaimedForMin"]) == 2
    assert sum(said["lost"]) == measured(found)["lostWork"]["nvidia.com/gpu"] == 2
    assert said["losses"] == {"borrower": {"evictions": 2, "lost": 2.0}}
    shares = {each["quota"]: each for each in said["shares"]}
    assert shares["borrower/quota"]["used"] == pytest.approx(3.0)
    assert shares["owner/quota"]["min"] == 2


def test_means_add_up_to_what_is_measured(tmp_path: Any) -> None:
    bodies = [ready_node("n", gpu=3), *(timed(f"a/p-{n}", 1, f"{n}m", "7m") for n in range(9))]
    bodies += [timed(f"b/p-{n}", 2, f"{2 * n}m", "5m") for n in range(6)]
    found = run(tmp_path, bodies)
    said, figures = course(found, "nvidia.com/gpu"), measured(found)
    mean = sum(sum(values) for values in said["used"].values()) / sum(said["capacity"])
    assert mean == pytest.approx(figures["utilisation"]["nvidia.com/gpu"], abs=1e-5)
    waited = sum(sum(values) for values in said["waiting"].values()) * found.end / 120 / 10**9
    assert waited == pytest.approx(figures["waits"]["mean"] * 15, rel=1e-4)


def test_a_node_counts_while_it_is_there(tmp_path: Any) -> None:
    step = {"at": "30m", "apply": [ready_node("late", gpu=4)]}
    gone = {"at": "45m", "delete": [{"kind": "Node", "name": "early"}]}
    bodies = [ready_node("early", gpu=4), timed("a/p", 2, duration="1h"), timeline(step, gone)]
    found = run(tmp_path, bodies, 60 * MINUTE)
    said = course(found, "nvidia.com/gpu")
    assert said["capacity"][0] == said["capacity"][-1] == 4.0
    assert said["capacity"][60] == 8.0
    assert said["nodes"]["late"][:60] == [None] * 60
    assert said["nodes"]["early"][-1] is None
    assert measured(found)["utilisation"]["nvidia.com/gpu"] <= 1


def test_no_time_has_no_parts_but_an_end(tmp_path: Any) -> None:
    bodies = [ready_node("n", gpu=4), quota("a", {"gpu": 4}), timed("a/p", 3)]
    found = run(tmp_path, bodies)
    said = course(found, main_resource([found]))
    assert (said["end"], said["capacity"], said["used"]) == (0, [], {"a": []})
    assert said["usedAtEnd"] == 0.75
    assert said["shares"] == [{"quota": "a/quota", "used": 3.0, "min": 4.0, "runtime": 3.0}]


def test_samples_are_bounded_and_cover_all_of_the_time(tmp_path: Any) -> None:
    bodies = [ready_node("n", gpu=1), quota("a", {"gpu": 1})]
    bodies += [timed(f"a/p-{n}", 1, f"{n}m", "30s") for n in range(600)]
    found = run(tmp_path, bodies)
    samples = found.lives.samples
    assert 200 <= len(samples) <= 401
    assert (samples[0].since, samples[-1].until) == (0, found.end)
    assert all(a.until == b.since for a, b in pairwise(samples))
    (share,) = course(found, "nvidia.com/gpu")["shares"]
    assert share["min"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("asks", "main"),
    [({"cpu": 1, "gpu": 1}, "nvidia.com/gpu"), ({"cpu": 1, "memory": "1Gi"}, "cpu")],
)
def test_charts_are_about_accelerators_where_there_are_any(
    tmp_path: Any, asks: Body, main: str
) -> None:
    found = run(tmp_path, [ready_node("n", gpu=4), limited_pod("a/p", asks)])
    assert main_resource([found]) == main


def test_nothing_at_all_is_no_error(tmp_path: Any) -> None:
    found = run(tmp_path, [ready_node("n", gpu=4)])
    assert main_resource([found]) is None
    assert course(found, None)["used"] == {}


@pytest.mark.parametrize(("pods", "p50", "p90"), [(2, 0, 60), (3, 60, 120), (11, 300, 540)])
def test_nine_of_ten_pods_waited_no_longer_than_p90(
    tmp_path: Any, pods: int, p50: int, p90: int
) -> None:
    """One GPU, and pods that each take it for a minute."""
    waits = [timed(f"a/p{number:02}", 1, duration="1m") for number in range(pods)]
    found = measured(run(tmp_path, [ready_node("n", gpu=1), *waits]))["waits"]
    assert (found["p50"], found["p90"], found["max"]) == (p50, p90, 60 * (pods - 1))
