"""The library: `aliquot.load` and `aliquot.simulate`."""

import datetime
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import aliquot
from aliquot.errors import AliquotError
from aliquot.json import Body
from tests.build.manifests import node, pod, queue, quota, timeline

STORY: list[Body] = [
    node(gpu=2),
    quota("a", {"gpu": 1}, {"gpu": 2}),
    quota("b", {"gpu": 1}),
    pod("a/p-1", {"gpu": 1}),
    pod("a/p-2", {"gpu": 1}),
    pod("b/p-3", {"gpu": 1}, times={"arrival": "60s"}),
]


def test_the_outcome_is_that_of_the_command(tmp_path: Path) -> None:
    file = tmp_path / "story.yaml"
    file.write_text(yaml.safe_dump_all(STORY))
    loaded = aliquot.load([str(file)])
    assert loaded == STORY
    assert aliquot.load(file) == aliquot.load(str(file)) == aliquot.load((tmp_path,)) == STORY
    outcome = aliquot.simulate(loaded)
    assert outcome["policy"] == "capacity"
    assert [each["pod"] for each in outcome["evictions"]] == ["a/p-2"]
    assert outcome == aliquot.simulate(iter(STORY), policy="auto")
    assert aliquot.simulate(STORY, until="30s")["until"] == 30
    assert aliquot.simulate(STORY, until=30)["evictions"] == []
    json.dumps(outcome)


def test_what_is_given_is_not_changed() -> None:
    before = json.dumps(STORY)
    aliquot.simulate(STORY)
    assert json.dumps(STORY) == before


def test_policy_and_configuration_are_as_for_the_command(tmp_path: Path) -> None:
    assert aliquot.simulate(STORY, policy="fair")["policy"] == "fair"
    config: Body = {"profiles": [{"schedulerName": "aliquot", "policy": "fair"}]}
    assert aliquot.simulate(STORY, config=config)["policy"] == "fair"
    assert aliquot.simulate(STORY, policy="capacity", config=config)["policy"] == "capacity"
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump({"kind": "Configuration", **config}))
    assert aliquot.simulate(STORY, config=file)["policy"] == "fair"


def test_objects_may_have_what_python_makes_of_them() -> None:
    born = {"creationTimestamp": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)}
    body = pod("a/p", {"gpu": 1})
    body["metadata"] |= born
    body["spec"]["containers"] = tuple(body["spec"]["containers"])
    listed = {"apiVersion": "v1", "kind": "List", "items": [node(gpu=1), body]}
    assert aliquot.simulate([listed])["pods"][0]["phase"] == "Running"


LOOP: list[Any] = []
LOOP.append(LOOP)
BAD: list[dict[str, Any]] = [
    {"objects": "story.yaml"},
    {"objects": None},
    {"objects": 7},
    {"objects": node()},
    {"objects": ["story.yaml"]},
    {"objects": [None]},
    {"objects": [{}]},
    {"objects": [{"kind": 7}]},
    {"objects": [{"kind": "Pod", "metadata": LOOP}]},
    {"objects": [{"kind": "Pod", "metadata": {"name": object()}}]},
    {"objects": [{"kind": "Pod", "metadata": {"name": 10**40}}]},
    {"objects": [pod("a/p", {"gpu": "many"})]},
    {"objects": [node(), node()]},
    {"objects": [timeline({"at": "soon"})]},
    {"objects": [queue("q"), *STORY]},  # two policies
    {"policy": "nice"},
    {"policy": None},
    {"policy": ["fair"]},
    {"until": "soon"},
    {"until": -1},
    {"until": float("nan")},
    {"until": [1]},
    {"config": 7},
    {"config": {"nonsense": 1}},
    {"config": {"eviction": {"holdFor": "soon"}}},
    {"config": "no-such-file.yaml"},
]


@pytest.mark.parametrize("arguments", BAD, ids=lambda each: repr(each)[:60])
def test_bad_arguments_raise_an_error_of_ours(arguments: dict[str, Any]) -> None:
    with pytest.raises(AliquotError):
        aliquot.simulate(**{"objects": STORY, **arguments})


@pytest.mark.parametrize("paths", [None, 7, ["no-such-file.yaml"], [None], {"a": 1}, [b"x", 7]])
def test_paths_that_are_none_are_refused(paths: Any) -> None:
    with pytest.raises(AliquotError):
        aliquot.load(paths)


def test_the_package_is_typed() -> None:
    assert (Path(aliquot.__file__).parent / "py.typed").exists()
