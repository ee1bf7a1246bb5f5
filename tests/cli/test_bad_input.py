"""Bad input: exit 2, one line on stderr that names file, document and field, nothing on stdout."""

from pathlib import Path
from typing import Any

import pytest

from tests.build.manifests import node, pod, quota, timeline, workload
from tests.cli.conftest import Run

CONFIG = {"apiVersion": "config.aliquot.dev/v1alpha1", "kind": "Configuration"}


def refused(aliquot: Run, *arguments: Any, stdin: str = "") -> str:
    ran = aliquot("simulate", *arguments, stdin=stdin)
    assert ran.code == 2, ran.out + ran.err
    assert ran.out == ""
    assert len(ran.err.splitlines()) == 1, ran.err
    assert "Traceback" not in ran.err
    return ran.err


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"metadata": {"name": "x"}}, ["kind", "missing"]),
        ({"kind": "Pod", "metadata": {"name": "x"}}, ["apiVersion", "missing"]),
        ({"apiVersion": 1, "kind": "Pod"}, ["apiVersion", "text"]),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {}}, ["metadata.name", "missing"]),
        (pod("a/Upper"), ["metadata.name", "'Upper'"]),
        (pod("Team A/p"), ["metadata.namespace", "'Team A'"]),
        (pod("a/p", {"cpu": "-1"}), ["Pod a/p", "requests[cpu]", "-1 is negative"]),
        (pod("a/p", {"cpu": "many"}), ["requests[cpu]", "'many' is not a quantity"]),
        (pod("a/p", {"cpu": True}), ["requests[cpu]", "True is not a quantity"]),
        (pod("a/p", {"cpu": None}), ["requests[cpu]", "None is not a quantity"]),
        (pod("a/p", {"gpu": "0.5"}), ["nvidia.com/gpu", "not a whole number"]),
        (pod("a/p", containers={}), ["spec.containers", "expected a list, got an object"]),
        (pod("a/p", containers=[]), ["spec.containers", "at least one container"]),
        (pod("a/p", nodeName="nope"), ["spec.nodeName", "there is no node nope"]),
        (pod("a/p", priorityClassName="vip"), ["priorityClassName", "no PriorityClass vip"]),
        (pod("a/p", priority=2**31), ["spec.priority", "2147483648 is not between"]),
        (pod("a/p", tolerations=[{"operator": "Like"}]), ["spec.tolerations", "'Like'"]),
        (pod("a/p", {"cpu": 1}, {"duration": "soon"}), ["sim.aliquot.dev/duration", "'soon'"]),
        (pod("a/p", {"cpu": 1}, {"arrival": "-5s"}), ["sim.aliquot.dev/arrival", "'-5s'"]),
        (quota("a", {"cpu": 4}, {"cpu": 2}), ["spec.min[cpu]", "min 4 is above max 2"]),
        (quota("a", {"cpu": "x"}), ["spec.min[cpu]", "'x' is not a quantity"]),
        (node("n2", cpu="-3"), ["status.allocatable[cpu]", "negative"]),
        (workload("Deployment", "a/w", {}, replicas=-1), ["spec.replicas", "-1"]),
        (workload("Deployment", "a/w", {}, replicas=10**9), ["spec.replicas", "1000000000"]),
        (workload("Deployment", "a/w", {}, replicas="two"), ["spec.replicas", "whole number"]),
        (timeline({"at": "noon"}), ["steps[0]", "at", "'noon'"]),
        (timeline({"apply": []}), ["steps[0]", "at"]),
        (timeline({"at": 1, "aply": []}), ["aply"]),
        (timeline({"at": 1, "apply": [pod("a/p", {"cpu": "x"})]}), ["steps[0].apply[0]", "'x'"]),
        (
            timeline({"at": 1, "delete": [{"kind": "Pod", "name": "ghost"}]}),
            ["steps[0].delete[0]", "no Pod default/ghost"],
        ),
        (["not", "an object"], ["expected an object", "got a list"]),
    ],
)
def test_what_is_wrong_is_named(aliquot: Run, document: Any, words: list[str]) -> None:
    message = refused(aliquot, [node(), document])
    for word in ["input-1.yaml, document 2", *words]:
        assert word in message


def test_duplicates_and_second_quotas_name_both(aliquot: Run) -> None:
    twice = refused(aliquot, [node(), pod("a/p"), pod("a/p")])
    assert "document 3: Pod a/p" in twice
    assert "stands twice; also in" in twice
    second = refused(aliquot, [node(), quota("a", {}), quota("a/other", {})])
    assert "ElasticQuota a/other" in second
    assert "has a quota already: ElasticQuota a/quota" in second


def test_a_bound_above_hard_is_refused(aliquot: Run) -> None:
    hard = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "rq", "namespace": "a"},
        "spec": {"hard": {"requests.nvidia.com/gpu": 4, "pods": 10}},
    }
    message = refused(aliquot, [node(), quota("a", {"gpu": 2}, {"gpu": 6}), hard])
    assert "max 6 is above hard 4 of ResourceQuota rq" in message


@pytest.mark.parametrize(
    "text",
    [
        "a: [1, 2",
        "kind: Pod\nkind: Pod\n",
        "[" * 100_000,
        "- " * 50_000 + "a",
        "a: &a [*a]",
        "\n".join(
            ["a0: &a0 {" + ", ".join(f"k{i}: 1" for i in range(10)) + "}"]
            + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
        ),
        "\n".join(
            ["b0: &b0 {x: 1}"]
            + [f"b{n}: &b{n} {{<<: [{', '.join([f'*b{n - 1}'] * 10)}]}}" for n in range(1, 30)]
        ),
        "!!python/object/apply:os.system ['true']",
        "kind: " + "x" * 100_000,
        '{"kind": "Pod", "kind": "Pod"}',
        "\x00",
        "kind: \ud83d".encode("utf-8", "surrogatepass").decode("utf-8", "replace"),
        "true",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{resources: "
        "{requests: {cpu: 0x" + "f" * 6000 + "}}}]}",
    ],
    ids=lambda text: repr(text[:24]),
)
def test_hostile_files_are_refused_at_once(aliquot: Run, text: str) -> None:
    assert "standard input" in refused(aliquot, "-", stdin=text)


def test_messages_are_short_whatever_they_quote(aliquot: Run) -> None:
    message = refused(aliquot, [{"apiVersion": ["x"] * 10_000, "kind": "Pod"}])
    assert len(message) < 1_000
    assert "apiVersion" in message


def test_a_file_that_cannot_be_read_is_named_with_the_cause(aliquot: Run, tmp_path: Path) -> None:
    assert "nowhere.yaml" in refused(aliquot, "nowhere.yaml")
    assert "no such file" in refused(aliquot, [node()], "--config", "nowhere.yaml")
    (tmp_path / "empty").mkdir()
    assert "holds no" in refused(aliquot, str(tmp_path / "empty"))
    (tmp_path / "binary.yaml").write_bytes(bytes(range(128, 256)))
    assert "UTF-8" in refused(aliquot, str(tmp_path / "binary.yaml"))
    assert "file name too long" in refused(aliquot, "x" * 5000)


DEFAULTS = "placement.defaultConstraints"


def spread(*constraints: dict[str, Any]) -> dict[str, Any]:
    """A configuration with such default constraints: what is given differs from a good one."""
    good = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {"placement": {"defaultConstraints": [{**good, **each} for each in constraints]}}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"capacityy": {}}, ["capacityy"]),
        ({"capacity": {"borow": "x"}}, ["capacity", "borow"]),
        (
            {"capacity": {"borrow": "all"}},
            ["capacity.borrow", "none of freeCapacity, unusedMin"],
        ),
        ({"gpu": {"memoryGB": 0}}, ["gpu.memoryGB", "0"]),
        ({"gpu": {"models": {"a100": "x"}}}, ["gpu.models", "expected a list"]),
        ({"gpu": {"models": {"a100": []}}}, ["gpu.models.a100", "lists no value"]),
        ({"gpu": {"models": {"a 100": ["x"]}}}, ["gpu.models.a 100", "no name of a resource"]),
        ({"gpu": {"models": {"": ["x"]}}}, ["gpu.models", "must have a name"]),
        ({"gpu": {"models": {"a": ["x y"]}}}, ["gpu.models.a[0]", "no value of a label"]),
        ({"gpu": {"models": {"a": [""]}}}, ["gpu.models.a[0]", "empty"]),
        ({"gpu": {"models": {"a": ["x"], "b": ["y", "x"]}}}, ["gpu.models.b[1]", "in a"]),
        ({"eviction": {"holdFor": "ages"}}, ["eviction.holdFor", "'ages'"]),
        ({"eviction": {"maxPerMinute": -1}}, ["eviction.maxPerMinute", "-1", "0: no brake"]),
        ({"eviction": {"maxPerMinute": "5"}}, ["eviction.maxPerMinute"]),
        ({"eviction": {"maxPerMinute": 1.5}}, ["eviction.maxPerMinute"]),
        ({"eviction": {"maxShare": 101}}, ["eviction.maxShare", "101", "percentage"]),
        ({"eviction": {"maxShare": True}}, ["eviction.maxShare"]),
        ({"hierarchy": {"revokeAfter": []}}, ["hierarchy.revokeAfter"]),
        ({"fair": {"overQuotaOrder": ["size"]}}, ["fair.overQuotaOrder", "'size'"]),
        ({"kind": "Config"}, ["kind", "'Config'"]),
        ({"apiVersion": "v1"}, ["apiVersion", "'v1'"]),
        ({"profiles": [{"policy": "auto"}]}, ["profiles[0]", "schedulerName"]),
        (spread({"maxSkew": 0}), [f"{DEFAULTS}[0].maxSkew", "is 0, must be at least 1"]),
        (spread({"topologyKey": ""}), [f"{DEFAULTS}[0].topologyKey", "is missing"]),
        (spread({"topologyKey": "a b"}), [f"{DEFAULTS}[0].topologyKey", "alphanumeric"]),
        (
            spread({}, {"whenUnsatisfiable": "Never"}),
            [f"{DEFAULTS}[1].whenUnsatisfiable", "'Never' is none of DoNotSchedule, Schedule"],
        ),
        (spread({}, {"maxSkew": 2}), [f"{DEFAULTS}[1]", "another constraint"]),
        (spread({"labelSelector": {}}), [f"{DEFAULTS}[0]", "labelSelector"]),
        (spread({"minDomains": 2}), [f"{DEFAULTS}[0]", "minDomains"]),
        ({"placement": {"defaultConstraints": {}}}, [DEFAULTS, "expected a list"]),
    ],
)
def test_configuration_is_checked_to_the_last_key(
    aliquot: Run, config: dict[str, Any], words: list[str]
) -> None:
    message = refused(aliquot, [node()], "--config", [{**CONFIG, **config}])
    for word in words:
        assert word in message


def test_wrong_usage_names_the_argument(aliquot: Run) -> None:
    assert "PATH" in refused(aliquot)
    assert "--until" in refused(aliquot, [node()], "--until", "9" * 5000)
    assert "--policy" in refused(aliquot, [node()], "--policy", "best")
    assert aliquot().code == 0
