"""Koordinator's quota trees, as commands show them."""

import json
from pathlib import Path
from typing import Any

import yaml

from aliquot.engine.policies import POLICIES
from aliquot.json import Body
from tests.build.manifests import (
    KOORDINATOR,
    labelled,
    node,
    pod,
    quota,
    timeline,
    tree_quota,
    workload,
)
from tests.cli.conftest import Run

CONFIG = {"apiVersion": "config.aliquot.dev/v1alpha1", "kind": "Configuration"}
HIERARCHY = {**CONFIG, "profiles": [{"schedulerName": "aliquot", "policy": "hierarchy"}]}
IMPLICIT = {**HIERARCHY, "hierarchy": {"parentPods": "implicitChild"}}
TREE = [
    node("n", gpu=8, cpu=64),
    tree_quota("koordinator-system/research", {"gpu": 6}, {"gpu": 8}, is_parent="true"),
    tree_quota(
        "koordinator-system/vision",
        {"gpu": 4},
        {"gpu": 8},
        parent="research",
        weight='{"nvidia.com/gpu": 3}',
    ),
    tree_quota("speech/speech", {"gpu": 2}, {"gpu": 2}, parent="research"),
]
DEFAULT = "koordinator-system/koordinator-default-quota"
NAMED = f"metadata.labels[{KOORDINATOR}name]"


def validated(aliquot: Run, *documents: Any, code: int, config: Body = HIERARCHY) -> list[Body]:
    """What there is to say where the policy is no question."""
    ran = aliquot("validate", list(documents), "--config", [config], "-o", "json")
    assert ran.code == code, ran.out + ran.err
    found: list[Body] = json.loads(ran.out)["findings"]
    return found


def simulated(aliquot: Run, *documents: Any) -> dict[str, Any]:
    ran = aliquot("simulate", list(documents), "--policy", "hierarchy", "-o", "json")
    assert ran.code == 0, ran.err
    result: dict[str, Any] = json.loads(ran.out)
    return result


def deletion(path: str) -> Body:
    namespace, name = path.split("/")
    return {"kind": "ElasticQuota", "namespace": namespace, "name": name}


def test_quotas_show_parent_and_weight(aliquot: Run) -> None:
    result = simulated(aliquot, *TREE, labelled(pod("a/p", {"gpu": 1}), name="vision"))
    quotas = {
        each["name"]: each for each in result["quotas"] if not each["name"].endswith("-quota")
    }
    assert {name: each["parent"] for name, each in quotas.items()} == {
        "speech/speech": "koordinator-system/research",
        "koordinator-system/research": None,
        "koordinator-system/vision": "koordinator-system/research",
    }
    weights = {name: each["weight"]["nvidia.com/gpu"] for name, each in quotas.items()}
    assert weights == {
        "speech/speech": "2",
        "koordinator-system/research": "8",
        "koordinator-system/vision": "3",
    }
    used = {name: each["used"]["nvidia.com/gpu"] for name, each in quotas.items()}
    assert used == {
        "speech/speech": "0",
        "koordinator-system/research": "1",
        "koordinator-system/vision": "1",
    }


def test_pods_are_found_by_label_and_namespace(aliquot: Run) -> None:
    deployment = workload("Deployment", "a/web", {"gpu": 1}, replicas=1)
    template = deployment["spec"]["template"]
    template["metadata"]["labels"] = {f"{KOORDINATOR}quota-name": "vision"}
    named = labelled(pod("speech/named", {"gpu": 1}), name="vision")
    pods = [named, pod("speech/p", {"gpu": 1}), pod("koordinator-system/p", {"gpu": 1}), pod("x/p")]
    result = simulated(aliquot, *TREE, deployment, *pods)
    assert {each["pod"]: each["quota"] for each in result["pods"]} == {
        "a/web-0": "koordinator-system/vision",
        "speech/named": "koordinator-system/vision",
        "speech/p": "speech/speech",
        "koordinator-system/p": "koordinator-system/vision",
        "x/p": DEFAULT,
    }


def test_an_ancestor_bounds_what_is_below(aliquot: Run) -> None:
    bounds = tree_quota("koordinator-system/research", {"gpu": 6}, {"gpu": 6}, is_parent="true")
    large = labelled(pod("a/p", {"gpu": 7}), name="vision")
    (found,) = validated(aliquot, TREE[0], bounds, *TREE[2:], large, code=0)
    assert found["problem"] == (
        "can never start: asks for 7 nvidia.com/gpu, max is 6 in quota koordinator-system/research"
    )


def test_objects_carry_what_koordinator_writes(aliquot: Run) -> None:
    spared = labelled(pod("a/spared", {"gpu": 1}), name="vision", preemptible="false")
    waits = labelled(pod("a/waits", {"gpu": 8}), name="vision", preemptible="false")
    frugal = tree_quota("own/frugal", {"gpu": 2}, {"gpu": 4}, lend="false")
    runs = labelled(pod("own/runs", {"gpu": 1}), name="frugal")
    ran = aliquot(
        "simulate", [*TREE, frugal, spared, waits, runs], "--policy", "hierarchy", "-o", "objects"
    )
    assert ran.code == 0, ran.err
    objects = {each["metadata"]["name"]: each for each in yaml.safe_load_all(ran.out)}

    def says(name: str, key: str) -> str:
        figures = json.loads(objects[name]["metadata"]["annotations"][KOORDINATOR + key])
        return str(figures.get("nvidia.com/gpu"))

    assert objects["vision"]["status"]["used"] == {"nvidia.com/gpu": "1"}
    assert says("vision", "request") == says("vision", "child-request") == "9"
    for name in ("vision", "research"):
        assert says(name, "non-preemptible-request") == "9"
        assert says(name, "non-preemptible-used") == "1"
    assert says("speech", "non-preemptible-used") == "None"
    assert says("frugal", "child-request") == "1"
    assert says("vision", "runtime") != "None"
    weight = objects["vision"]["metadata"]["annotations"][f"{KOORDINATOR}shared-weight"]
    assert weight == '{"nvidia.com/gpu": 3}'
    assert "cpu" not in objects["vision"]["metadata"]["annotations"][f"{KOORDINATOR}request"]


def test_the_root_quota_has_the_sums_of_the_first_level(aliquot: Run) -> None:
    root = tree_quota("koordinator-system/koordinator-root-quota", is_parent="true")
    asks = labelled(pod("a/asks", {"gpu": 3}), name="vision")
    more = labelled(pod("a/more", {"gpu": 20}), name="vision")
    others = [pod("kube-system/dns", {"gpu": 1}), pod("x/p", {"gpu": 2})]
    given = [*TREE, root, asks, more, *others]
    ran = aliquot("simulate", given, "--policy", "hierarchy", "-o", "objects")
    assert ran.code == 0, ran.err
    objects = {each["metadata"]["name"]: each for each in yaml.safe_load_all(ran.out)}

    def figure(name: str, key: str) -> int:
        figures = json.loads(objects[name]["metadata"]["annotations"][KOORDINATOR + key])
        return int(figures.get("nvidia.com/gpu", 0))

    names = ("research", "koordinator-default-quota", "koordinator-system-quota")
    assert objects[root["metadata"]["name"]]["status"]["used"]["nvidia.com/gpu"] == "6"
    limited = min(figure("research", "request"), 8)
    assert figure("koordinator-root-quota", "request") == limited + 2 + 1
    given_away = sum(figure(name, "guaranteed") for name in names)
    assert figure("koordinator-root-quota", "allocated") == given_away


def test_objects_without_its_keys_are_left_alone(aliquot: Run) -> None:
    ran = aliquot("simulate", [node(), quota("a", {"gpu": 1})], "-o", "objects")
    assert "koordinator" not in ran.out
    root = tree_quota("koordinator-system/koordinator-root-quota", is_parent="true")
    ran = aliquot("simulate", [*TREE, root], "--policy", "capacity", "-o", "objects")
    assert root in list(yaml.safe_load_all(ran.out))


def test_what_is_not_quoted_is_read_with_a_warning(aliquot: Run) -> None:
    child = tree_quota("a/x", {}, {"cpu": 20}, is_parent=False, lend=True)
    child["metadata"]["labels"][f"{KOORDINATOR}parent-quota-name"] = "top"
    child["metadata"]["annotations"] = {f"{KOORDINATOR}shared-weight": {"cpu:4": None}}
    top = tree_quota("a/top", {}, {"cpu": 20}, is_parent=True)
    found = validated(aliquot, child, top, code=0)
    assert len(found) == 4
    assert all("put it in quotes" in each["problem"] for each in found)
    result = simulated(aliquot, child, top)
    (quota,) = [each for each in result["quotas"] if each["name"] == "a/x"]
    assert (quota["parent"], quota["weight"]) == ("a/top", {"cpu": "4"})


def test_pods_of_a_workload_may_lack_quotes_too(aliquot: Run) -> None:
    deployment = workload("Deployment", "a/web", {"gpu": 1}, replicas=1)
    labels = {f"{KOORDINATOR}name": "vision", f"{KOORDINATOR}preemptible": False}
    deployment["spec"]["template"]["metadata"]["labels"] = labels
    (found,) = validated(aliquot, *TREE, deployment, code=0)
    assert found["field"] == f"spec.template.metadata.labels[{KOORDINATOR}preemptible]"


def test_a_namespace_that_stands_twice_is_a_warning(aliquot: Run) -> None:
    (found,) = validated(aliquot, tree_quota("a/x", namespaces='["n", "n"]'), code=0)
    assert found["field"] == f"metadata.annotations[{KOORDINATOR}namespaces]"


def test_a_broken_tree_is_refused_by_both_commands(aliquot: Run) -> None:
    broken = [*TREE[:3], tree_quota("speech/speech", {"gpu": 3}, {"gpu": 3}, parent="research")]
    (found,) = validated(aliquot, *broken, code=1)
    assert found["field"] == "spec.min[nvidia.com/gpu]"
    ran = aliquot("simulate", broken, "--policy", "capacity")
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert found["problem"] in ran.err


def test_every_step_is_judged_as_a_whole(aliquot: Run) -> None:
    """Parent and children get a resource together; one of them alone would be refused."""
    wide: Body = {"gpu": 8, "cpu": 32}
    children = [
        tree_quota("koordinator-system/vision", {"gpu": 4, "cpu": 8}, wide, parent="research"),
        tree_quota("speech/speech", {"gpu": 2, "cpu": 8}, wide, parent="research"),
    ]
    parent = tree_quota(
        "koordinator-system/research", {"gpu": 6, "cpu": 16}, wide, is_parent="true"
    )
    assert (
        validated(aliquot, *TREE, timeline({"at": 5, "apply": [*children, parent]}), code=0) == []
    )
    found = validated(aliquot, *TREE, timeline({"at": 5, "apply": children}), code=1)
    assert {each["field"] for each in found} == {"spec.min[cpu]", "spec.max[cpu]"}
    assert {each["at"] for each in found} == {5}


def test_parents_may_come_later(aliquot: Run) -> None:
    step = timeline({"at": 10, "apply": [TREE[1]]})
    child = labelled(pod("a/p", {"gpu": 1}), name="vision")
    (found,) = validated(aliquot, TREE[0], TREE[2], step, child, code=0)
    assert (found["severity"], found["object"]) == (
        "warning",
        "ElasticQuota koordinator-system/vision",
    )
    result = simulated(aliquot, TREE[0], TREE[2], step, child)
    assert {each["name"]: each["parent"] for each in result["quotas"]}[
        "koordinator-system/vision"
    ] == "koordinator-system/research"
    (found,) = validated(aliquot, TREE[0], TREE[2], child, code=1)
    assert found["problem"] == "there is no parent quota research"


def test_deleting_a_parent_is_refused(aliquot: Run) -> None:
    found = validated(
        aliquot,
        *TREE,
        timeline({"at": 3, "delete": [deletion("koordinator-system/research")]}),
        code=1,
    )
    said = [each["problem"] for each in found]
    assert said.count("there is no parent quota research") == 2
    assert "cannot be deleted: it is the parent of koordinator-system/vision, speech/speech" in said
    both = [
        deletion(path)
        for path in ("koordinator-system/research", "koordinator-system/vision", "speech/speech")
    ]
    assert validated(aliquot, *TREE, timeline({"at": 3, "delete": both}), code=0) == []


def test_a_quota_that_pods_name_cannot_be_deleted(aliquot: Run) -> None:
    """`validate` reports an error; `simulate` warns and shows what becomes of the pods."""
    step = timeline({"at": 3, "delete": [deletion("koordinator-system/vision")]})
    named = labelled(pod("a/p", {"gpu": 1}), name="vision")
    (found,) = validated(aliquot, *TREE, named, step, code=1)
    assert found["problem"] == "cannot be deleted: it is the quota of Pod a/p"
    assert found["place"].endswith("Timeline steps[0].delete[0]")
    ran = aliquot("simulate", [*TREE, named, step], "--policy", "hierarchy", "-o", "json")
    assert ran.code == 0
    assert "(a cluster would refuse it)" in ran.err
    assert [each["quota"] for each in json.loads(ran.out)["pods"]] == [DEFAULT]
    gone = timeline(
        {
            "at": 3,
            "delete": [
                deletion("koordinator-system/vision"),
                {"kind": "Pod", "namespace": "a", "name": "p"},
            ],
        }
    )
    assert validated(aliquot, *TREE, named, gone, code=0) == []
    ends = labelled(pod("a/p", {"gpu": 1}, {"duration": "1s"}), name="vision")
    assert validated(aliquot, *TREE, ends, step, code=0) == []
    bound = pod("koordinator-system/p", {"gpu": 1})
    assert validated(aliquot, *TREE, bound, step, code=0) == []


def test_a_pod_may_not_name_a_parent(aliquot: Run) -> None:
    named = labelled(pod("a/p", {"gpu": 1}), name="research")
    (found,) = validated(aliquot, *TREE, named, code=1)
    assert (found["object"], found["field"]) == ("Pod a/p", NAMED)
    assert found["problem"] == (
        "quota koordinator-system/research is a parent and holds no pods; "
        "name one of its children (koordinator-system/vision, speech/speech)"
    )
    assert validated(aliquot, *TREE, named, code=0, config=IMPLICIT) == []
    moved = timeline({"at": 1, "apply": [named]})
    assert len(validated(aliquot, *TREE, labelled(named, name="vision"), moved, code=1)) == 1
    other = timeline({"at": 1, "apply": [labelled(named, name="koordinator-default-quota")]})
    assert validated(aliquot, *TREE, labelled(named, name="vision"), other, code=0) == []


def test_a_pod_may_not_name_a_closed_quota(aliquot: Run) -> None:
    """An error for what a cluster refuses; a warning for a workload, whose pods it refuses."""
    named = labelled(pod("a/p", {"gpu": 1}), name="speech")
    (found,) = validated(aliquot, *TREE, named, code=1)
    assert (found["severity"], found["field"]) == ("error", NAMED)
    assert found["problem"] == (
        "quota speech/speech is not open to pods of namespace a, only to those of speech; name a "
        "quota of a, or have the quota list this namespace in its annotation "
        f"{KOORDINATOR}namespaces"
    )
    owner = workload("Deployment", "a/web", {"gpu": 1}, replicas=1)
    owner["spec"]["template"]["metadata"]["labels"] = {f"{KOORDINATOR}name": "speech"}
    (found,) = validated(aliquot, *TREE, owner, code=0)
    assert (found["severity"], found["field"]) == ("warning", f"spec.template.{NAMED}")
    ran = aliquot("simulate", [*TREE, named, owner], "-o", "json")
    assert (ran.code, "not open to pods of namespace a" in ran.err) == (0, True)
    assert {each["reason"] for each in json.loads(ran.out)["pending"]} == {"QuotaNotAllowed"}
    open_to_it = {**HIERARCHY, "systemNamespaces": ["speech"]}
    assert validated(aliquot, *TREE, named, owner, code=0, config=open_to_it) == []
    plain = {**CONFIG, "profiles": [{"schedulerName": "aliquot", "policy": "capacity"}]}
    (found,) = validated(aliquot, *TREE, named, code=0, config=plain)
    assert (found["severity"], found["field"]) == ("warning", NAMED)
    assert found["problem"].startswith("has no effect: a label names the quota of a pod under")


def test_a_quota_with_pods_becomes_no_parent(aliquot: Run) -> None:
    step = timeline(
        {
            "at": 1,
            "apply": [
                tree_quota(
                    "koordinator-system/vision",
                    {"gpu": 4},
                    {"gpu": 8},
                    parent="research",
                    is_parent="true",
                )
            ],
        }
    )
    inside = [
        labelled(pod("a/p", {"gpu": 1}), name="vision"),
        pod("koordinator-system/p", {"gpu": 1}),
        labelled(workload("Deployment", "a/web", {"gpu": 1}), name="no-pod"),
    ]
    (found,) = validated(aliquot, *TREE, *inside, step, code=1)
    assert found["problem"] == "cannot become a parent: it is the quota of Pod a/p and 1 more"
    assert validated(aliquot, *TREE, step, code=0) == []
    assert validated(aliquot, *TREE, *inside, step, code=0, config=IMPLICIT) == []


def test_the_preemptible_label_of_a_pod_does_not_change(aliquot: Run) -> None:
    named = labelled(pod("a/p", {"gpu": 1}), name="vision", preemptible="false")
    step = timeline({"at": 1, "apply": [labelled(named, preemptible="true")]})
    (found,) = validated(aliquot, *TREE, named, step, code=1)
    assert found["field"] == f"metadata.labels[{KOORDINATOR}preemptible]"


def test_a_name_that_is_never_there_is_a_warning(aliquot: Run) -> None:
    (found,) = validated(aliquot, *TREE, labelled(pod("a/p"), name="visoin"), code=0)
    assert (found["field"], found["problem"]) == (NAMED, "there is no quota visoin")
    special = labelled(pod("a/p"), name="koordinator-default-quota")
    late = labelled(pod("a/q"), name="late")
    step = timeline({"at": 9, "apply": [tree_quota("x/late", {}, {"gpu": 1})]})
    assert validated(aliquot, *TREE, special, late, step, code=0) == []


def test_special_quotas_in_a_dump_are_fine(aliquot: Run) -> None:
    huge = {"cpu": "1844674407370955161", "memory": "1844674407370955161"}
    dumped = [
        tree_quota("koordinator-system/koordinator-root-quota", is_parent="true", lend="false"),
        tree_quota("koordinator-system/koordinator-system-quota", None, huge),
        tree_quota("koordinator-system/koordinator-default-quota", None, huge),
    ]
    assert validated(aliquot, *TREE, *dumped, code=0) == []
    names = [each["name"] for each in simulated(aliquot, *TREE, *dumped)["quotas"]]
    assert "koordinator-system/koordinator-default-quota" in names
    assert len(names) == 5
    for name in ("root", "system", "default"):
        path = f"koordinator-system/koordinator-{name}-quota"
        step = timeline({"at": 1, "delete": [deletion(path)]})
        found = validated(aliquot, *TREE, *dumped, step, code=1)
        assert "cannot be deleted" in [each["problem"] for each in found]


def test_guarantees_add_up_on_the_first_level(aliquot: Run) -> None:
    assert validated(aliquot, *TREE, tree_quota("b/b", {"gpu": 2}, {"gpu": 2}), code=0) == []
    (found,) = validated(aliquot, *TREE, tree_quota("b/b", {"gpu": 3}, {"gpu": 3}), code=0)
    assert "guarantees add up to 9 of 8 nvidia.com/gpu" in found["problem"]


def test_many_quotas_in_a_namespace_are_fine_in_a_tree(aliquot: Run) -> None:
    plain = [quota("koordinator-system/plain-1", {}), quota("koordinator-system/plain-2", {})]
    assert validated(aliquot, *TREE, *plain, code=0) == []
    assert len(validated(aliquot, *plain, code=1, config=CONFIG)) == 1


def test_a_resource_quota_does_not_bound_a_quota_that_lists_its_namespace(aliquot: Run) -> None:
    hard = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "rq", "namespace": "speech"},
        "spec": {"hard": {"requests.nvidia.com/gpu": 1}},
    }
    assert validated(aliquot, *TREE, hard, code=0) == []


def test_a_tree_that_no_profile_has_is_warned_of(aliquot: Run) -> None:
    other = tree_quota("b/b", {"gpu": 1}, {"gpu": 1}, tree_id="pool-b")
    (found,) = validated(aliquot, *TREE, other, code=0)
    assert found["severity"] == "warning"
    assert found["problem"].startswith("no ElasticQuotaProfile has the tree 'pool-b'")


def test_auto_asks_for_hierarchy(aliquot: Run) -> None:
    ran = aliquot("simulate", TREE)
    if "hierarchy" in POLICIES:
        assert ran.out.startswith(
            "policy hierarchy (ElasticQuota koordinator-system/research carries"
        )
    else:
        assert (ran.code, ran.out) == (2, "")
        assert "asks for policy hierarchy" in ran.err


def test_rules_hold_in_folders_and_scenarios_too(aliquot: Run, tmp_path: Path) -> None:
    scenario = {
        "apiVersion": "aliquot.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "tree"},
        "policy": "capacity",
        "objects": [*TREE, labelled(pod("a/p", {"gpu": 1}), name="vision")],
        "steps": [
            {
                "at": 0,
                "expect": {
                    "quotas": {
                        "koordinator-system/vision": {"parent": "koordinator-system/research"}
                    }
                },
            }
        ],
    }
    assert aliquot("test", [scenario]).code == 0
    scenario["objects"] = [TREE[2]]
    assert aliquot("test", [scenario]).code == 2


def test_the_time_until_a_quota_gives_back_is_that_of_the_moment(aliquot: Run) -> None:
    objects = [
        node("n", gpu=4, cpu=8),
        tree_quota("a/a", {"gpu": 2}, {"gpu": 4}),
        tree_quota("b/b", {"gpu": 2}, {"gpu": 4}),
        pod("a/x", {"gpu": 4}, nodeName="n"),
        pod("b/p", {"gpu": 2}),
    ]
    for until, left in (("0s", 120), ("50s", 70), ("1m59s", 1)):
        flags = ("--policy", "hierarchy", "--until", until, "-o", "json")
        ran = aliquot("simulate", objects, *flags)
        (waits,) = json.loads(ran.out)["pending"]
        assert f"gives back in {left} s" in waits["message"]
