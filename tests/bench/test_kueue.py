"""What Kueue's generator consists of here, how its pods live, and that a small run is followed."""

import asyncio
from typing import Any

import pytest

from aliquot.bench.cluster import kueue, kueue_load
from aliquot.bench.cluster.pod_life import Life, PodLife, _Seen, _Spec, _Status
from aliquot.dialects.core.objects import Metadata
from aliquot.json import Body
from aliquot.kube.watch.known_names import Name
from tests.campaign import SOAK


def test_the_load_is_that_of_kueues_generator() -> None:
    load = kueue_load.load(1.0)
    sizes = [each.size for each in load.workloads]
    assert len(sizes) == 15_000
    assert {size: sizes.count(size) for size in ("small", "medium", "large")} == {
        **{"small": 350 * 30, "medium": 100 * 30},
        "large": 50 * 30,
    }
    assert load.limit == pytest.approx(66)
    assert load.workloads[-1].at == pytest.approx(49 * 1.2)
    assert [each.at for each in load.workloads] == sorted(each.at for each in load.workloads)
    assert len(load.quotas) == 5 + 30
    names = {each.pod["metadata"]["name"] for each in load.workloads}
    assert len(names) == 15_000, "a pod is found by its name alone"


def test_a_priority_is_given_by_its_class() -> None:
    values = {each["metadata"]["name"]: each["value"] for each in kueue_load.priority_classes()}
    for each in kueue_load.load(0.02).workloads:
        assert "priority" not in each.pod["spec"], "a server refuses it without a class"
        assert each.pod["spec"]["priorityClassName"] == each.size
    assert values == {"small": 50, "medium": 100, "large": 200}


def test_an_evicted_pod_comes_again_under_the_next_name() -> None:
    pod = kueue_load.load(0.02).workloads[0].pod
    first = pod["metadata"]["name"]
    assert kueue_load.pod_again(pod, first)["metadata"]["name"] == f"{first}.1"
    assert kueue_load.pod_again(pod, f"{first}.1")["metadata"]["name"] == f"{first}.2"
    assert pod["metadata"]["name"] == first


class Calls:
    """A client that remembers what is written."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str, Any]] = []

    async def call(self, method: str, path: str, body: Any = None, **more: Any) -> bytes:
        self.made.append((method, path, body))
        return b"{}"

    async def delete(self, path: str, body: Any) -> None:
        self.made.append(("DELETE", path, body))

    async def post(self, path: str, body: Any) -> None:
        self.made.append(("POST", path, body))


def seen(name: str, phase: str, **more: Any) -> Any:
    about = Metadata(name=name, namespace="n", uid=f"uid-{name}", **more)
    return _Seen(about, _Spec("node"), _Status(phase))


async def played(*events: Any) -> tuple[PodLife, list[tuple[str, str, Any]]]:
    """The life of pods that run for 10 ms, after these events."""
    calls = Calls()

    def again(namespace: str, name: str) -> Body | None:
        return {"metadata": {"name": f"{name}.1"}}

    life = PodLife(calls, again, lambda name: 0.01)  # type: ignore[arg-type]
    for event in events:
        if isinstance(event, Name):
            life.gone(event)
        else:
            life.put(event)
    worker = asyncio.create_task(life._worker())
    await asyncio.sleep(0.3)
    worker.cancel()
    return life, calls.made


def test_a_pod_ends_well_after_its_time() -> None:
    life, made = asyncio.run(played(seen("p", "Pending"), seen("p", "Pending")))
    assert [(method, body["status"]) for method, _, body in made] == [
        ("PATCH", {"phase": "Succeeded"})
    ]
    life, made = asyncio.run(
        played(seen("p", "Pending"), seen("p", "Succeeded"), Name("n", "p", "uid-p"))
    )
    assert life.ended_well == 1
    assert made == [], "it does not come again"


def test_an_evicted_pod_does_not_end_and_comes_again() -> None:
    gone = seen("p", "Pending", deletion_timestamp="2026-01-01T00:00:00Z")
    life, made = asyncio.run(played(seen("p", "Pending"), gone, Name("n", "p", "uid-p")))
    posts = [body["metadata"]["name"] for method, _, body in made if method == "POST"]
    assert posts == ["p.1"]
    assert not [body for method, _, body in made if method == "PATCH"]
    assert life.pods["p"].ending is not None


def test_waits_count_to_the_bind_that_lasted_and_lost_work_is_added_up() -> None:
    by_name = {
        "a": kueue_load.Workload("large", 0.0, 1.0, 20, {"metadata": {"name": "a"}}),
        "b": kueue_load.Workload("small", 0.0, 1.0, 1, {"metadata": {"name": "b"}}),
    }

    life = PodLife(Calls(), lambda *_: None)  # type: ignore[arg-type]
    life.pods |= {
        "a": Life(bound=11.0, ending=11.5),
        "a.1": Life(bound=14.0, ended=15.0),
        "b": Life(bound=10.5, ended=11.5),
        "b.1": Life(),
    }
    run = kueue._read(life, by_name, {"a": 10.0, "b": 10.0}, 5.0, 0.004, 0.02)
    assert run.waits == {"large": [4.0], "small": [0.5]}
    assert (run.evictions, run.lost) == (1, 10.0)
    run.waits["medium"] = [1.0]
    figures = {each.what: each for each in run.figures("on", 66.0, budgets=True)}
    assert figures["evictions"].met
    assert figures["CPU of the scheduler, a workload"].value == pytest.approx(4 / 3)
    assert figures["mean wait, large"].budget == "<= 21"
    assert all(not each.budget for each in run.figures("on", 66.0, budgets=False))


@pytest.mark.skipif(not SOAK, reason="a scheduler and a server of its own: in `make soak`")
def test_a_small_part_of_the_generator_is_followed_to_its_end() -> None:
    figures = kueue.measure(kueue.Settings(scale=0.01, server="embedded"), lambda _: None)
    assert len({each.on for each in figures}) == len(kueue.PATIENCES)
    totals = [each.value for each in figures if each.what == "until all have ended"]
    assert min(totals) > 1
    assert not [each for each in figures if each.budget], "budgets are about full sizes"
