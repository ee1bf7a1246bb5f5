"""Volcano's queues, gangs and jobs, as commands show them."""

import json
from typing import Any

import pytest
import yaml

from aliquot.json import Body
from tests.build.manifests import (
    annotated,
    gang_job,
    labelled,
    namespace,
    node,
    pod,
    pod_group,
    queue,
    quota,
    resource_quota,
    task,
    timeline,
    tree_quota,
    workload,
)
from tests.cli.conftest import Run

CONFIG = {"apiVersion": "config.aliquot.dev/v1alpha1", "kind": "Configuration"}
CAPACITY = {**CONFIG, "profiles": [{"schedulerName": "aliquot", "policy": "capacity"}]}
QUEUES = [node("n", cpu=8), queue("q", {"cpu": 4}, {"cpu": 6}), queue("r", {"cpu": 4})]
NAMED = "metadata.annotations[scheduling.volcano.sh/queue-name]"


def validated(aliquot: Run, *documents: Any, code: int, config: Body = CAPACITY) -> list[Body]:
    """What there is to say where the policy is no question."""
    ran = aliquot("validate", list(documents), "--config", [config], "-o", "json")
    assert ran.code == code, ran.out + ran.err
    found: list[Body] = json.loads(ran.out)["findings"]
    return found


def said(aliquot: Run, *documents: Any, code: int) -> list[tuple[str, str, str]]:
    found = validated(aliquot, *documents, code=code)
    return [(each["severity"], each["field"], each["problem"]) for each in found]


def simulated(aliquot: Run, *documents: Any) -> dict[str, Any]:
    ran = aliquot("simulate", list(documents), "--policy", "capacity", "-o", "json")
    assert ran.code == 0, ran.err
    result: dict[str, Any] = json.loads(ran.out)
    return result


def refused(aliquot: Run, *documents: Any) -> str:
    ran = aliquot("simulate", list(documents), "-o", "json")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran.err
    return ran.err


def deletion(name: str) -> Body:
    return {"kind": "Queue", "name": name}


def test_queues_ask_for_their_policy(aliquot: Run) -> None:
    ran = aliquot("simulate", [*QUEUES, annotated(pod("a/p", {"cpu": 1}), queue="q")], "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out)["policy"] == "queues"
    assert validated(aliquot, *QUEUES, code=0, config=CONFIG) == []


def test_queues_that_come_with_volcano_ask_for_nothing(aliquot: Run) -> None:
    ran = aliquot(
        "simulate",
        [node(), queue("default", weight=1), queue("root"), quota("a", {"gpu": 1}), pod("b/p")],
        *("-o", "json"),
    )
    assert (ran.code, ran.err) == (0, "")
    result = json.loads(ran.out)
    assert result["policy"] == "capacity"
    assert [each["name"] for each in result["quotas"]] == ["a/quota"]
    assert [(each["pod"], each["quota"]) for each in result["pods"]] == [("b/p", None)]


@pytest.mark.parametrize("other", [quota("a", {"cpu": 0}), tree_quota("a/a", lend="true")])
def test_queues_beside_quotas_need_a_policy(aliquot: Run, other: Body) -> None:
    words = refused(aliquot, *QUEUES, other)
    assert "Queue q: kind: there are queues and quotas, such as ElasticQuota a/" in words
    assert "say which policy holds by --policy" in words
    (found,) = validated(aliquot, *QUEUES, other, code=1, config=CONFIG)
    assert found["object"] == "Queue q"
    result = simulated(aliquot, *QUEUES, other)
    assert {each["name"] for each in result["quotas"]} == {
        "q",
        "r",
        f"a/{other['metadata']['name']}",
    }


def test_under_another_policy_queues_are_quotas(aliquot: Run) -> None:
    template = annotated(pod("x/x"), queue="r")["metadata"]["annotations"]
    deployment = workload("Deployment", "a/web", {"cpu": 1}, replicas=1)
    deployment["spec"]["template"]["metadata"]["annotations"] = template
    job = gang_job("a/j", task("m", 1, {"cpu": 1}), task("w", 2, {"cpu": 1}), minAvailable=1)
    job["spec"]["queue"] = "q"
    result = simulated(
        aliquot,
        *QUEUES,
        namespace("b", queue="q"),
        pod("b/p", {"cpu": 1}),
        pod("c/p", {"cpu": 1}),
        deployment,
        job,
        annotated(pod("a/large", {"cpu": 7}), queue="q"),
    )
    assert {each["pod"]: each["quota"] for each in result["pods"]} == {
        "a/j-0": "q",
        "a/j-1": "q",
        "a/j-2": "q",
        "a/large": "q",
        "a/web-0": "r",
        "b/p": "q",
        "c/p": None,
    }
    used = {each["name"]: (each["used"]["cpu"], each["max"]) for each in result["quotas"]}
    assert used == {"q": ("4", {"cpu": "6"}), "r": ("1", {})}
    (waits,) = result["pending"]
    assert (waits["pod"], waits["reason"]) == ("a/large", "QuotaMaxExceeded")


def test_objects_show_what_queues_hold_and_jobs_make(aliquot: Run) -> None:
    job = gang_job("a/j", task("m", 1, {"cpu": 1}), queue="q")
    ran = aliquot("simulate", [*QUEUES, job], "--policy", "capacity", "-o", "objects")
    bodies = {
        (each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(ran.out)
    }
    status = bodies["Queue", "q"]["status"]
    assert (status["state"], status["allocated"]) == ("Open", {"cpu": "1"})
    assert bodies["Job", "j"]["status"]["state"] == {"phase": "Running"}
    assert bodies["PodGroup", "j"]["spec"]["queue"] == "q"
    made = bodies["Pod", "j-0"]["metadata"]
    assert made["annotations"]["scheduling.k8s.io/group-name"] == "j"
    assert made["labels"]["volcano.sh/task-spec"] == "m"


def test_gangs_are_taken_by_both_commands(aliquot: Run) -> None:
    for group in ("scheduling.volcano.sh/v1beta1", "scheduling.x-k8s.io/v1alpha1"):
        members = [annotated(pod(f"a/p-{number}"), group="g") for number in range(2)]
        documents = [node(), pod_group("a/g", group, minMember=2), *members]
        assert {each["phase"] for each in simulated(aliquot, *documents)["pods"]} == {"Running"}
        assert said(aliquot, *documents, code=0) == []
    assert said(aliquot, node(), gang_job("a/j", task("x", 2)), code=0) == []


def test_a_workload_with_group_min_member_gets_a_pod_group(aliquot: Run) -> None:
    key = "scheduling.volcano.sh/group-min-member"
    owner = annotated(workload("StatefulSet", "a/web", {"cpu": 1}, replicas=2), queue="q")
    documents = [*QUEUES, annotated(owner, **{key: "2"})]
    assert said(aliquot, *documents, code=0) == []
    ran = aliquot("simulate", documents, "--policy", "capacity", "-o", "objects")
    bodies = {
        (each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(ran.out)
    }
    assert bodies["PodGroup", "podgroup-web"]["spec"] == {"minMember": 2, "queue": "q"}
    made = bodies["Pod", "web-1"]["metadata"]
    assert made["annotations"] == {"scheduling.k8s.io/group-name": "podgroup-web"}
    problem = "'two' is no whole number of at least 1"
    expected = ("error", f"metadata.annotations[{key}]", problem)
    assert said(aliquot, *QUEUES, annotated(owner, **{key: "two"}), code=1) == [expected]
    words = refused(aliquot, node(), annotated(owner, **{key: "two"}))
    assert f"StatefulSet a/web: metadata.annotations[{key}]: {problem}" in words
    lost = annotated(owner, **{key: "2"}, queue="lost")
    assert said(aliquot, *QUEUES, lost, code=1) == [("error", NAMED, "there is no queue lost")]


def test_a_queue_or_group_that_is_named_and_missing_is_reported(aliquot: Run) -> None:
    lost = annotated(pod("a/p"), queue="lost")
    assert said(aliquot, *QUEUES, lost, code=1) == [("error", NAMED, "there is no queue lost")]
    assert said(aliquot, node(), lost, code=0) == [("warning", NAMED, "there is no queue lost")]
    assert (
        "there is no queue lost"
        in aliquot(
            "simulate",
            [*QUEUES, gang_job("a/j", task("x", 1), queue="lost")],
            "--policy",
            "capacity",
        ).err
    )
    assert said(aliquot, *QUEUES, namespace("a", queue="root"), code=1) == [
        ("error", NAMED, "the root queue takes no pods")
    ]
    assert said(aliquot, *QUEUES, pod_group("a/g", queue="lost"), code=1) == [
        ("error", "spec.queue", "there is no queue lost")
    ]
    ((severity, field, problem),) = said(aliquot, node(), annotated(pod("a/p"), group="g"), code=0)
    assert (severity, field) == ("warning", "metadata.annotations[scheduling.k8s.io/group-name]")
    assert problem == "there is no PodGroup a/g; pods start by themselves"
    job = gang_job("a/j", task("x", 1))
    assert said(aliquot, node(), job, annotated(pod("a/p"), group="j"), code=0) == []


def test_a_queue_that_is_created_later_is_a_warning(aliquot: Run) -> None:
    late = timeline({"at": 9, "apply": [queue("late")]})
    ((severity, field, problem),) = said(
        aliquot, *QUEUES, annotated(pod("a/p"), queue="late"), late, code=0
    )
    assert (severity, field) == ("warning", NAMED)
    assert problem.startswith("queue late comes later")


def test_a_gang_is_in_one_queue(aliquot: Run) -> None:
    member = annotated(pod("a/p"), group="g", queue="r")
    assert said(aliquot, *QUEUES, pod_group("a/g", queue="q"), member, code=0) == [
        ("warning", NAMED, "'r' does not count: its gang is in the queue 'q'")
    ]
    template = task("x", 1)
    template["template"]["metadata"] = annotated(pod("x/x"), queue="r")["metadata"]
    ((severity, _, problem),) = said(aliquot, *QUEUES, gang_job("a/j", template, queue="q"), code=1)
    assert (severity, problem) == ("error", "is 'r', but the queue of the Job is 'q'")
    template["template"]["metadata"] = annotated(pod("x/x"), group="g")["metadata"]
    ((severity, _, problem),) = said(aliquot, node(), gang_job("a/j", template), code=1)
    assert (severity, problem) == ("error", "the pods of this Job are in a gang of their own")


RESTART = {"event": "PodEvicted", "action": "RestartJob"}
ABORT = {"event": "PodFailed", "action": "AbortJob"}


@pytest.mark.parametrize(
    ("policies", "where"),
    [
        ([RESTART, {**ABORT, "event": "PodEvicted"}], "[1].event"),
        ([RESTART, {"events": ["PodFailed", "PodEvicted"], "action": "AbortJob"}], "[1].event"),
        ([{"events": "PodFailed", "action": "AbortJob"}], "[0].events"),
        ([{"event": "PodEaten", "action": "AbortJob"}], "[0].event"),
        ([{"event": "PodFailed", "action": "Abort"}], "[0].action"),
        ([{"event": "PodFailed"}], "[0].action"),
        ([{"action": "AbortJob"}], "[0]"),
        ([{**ABORT, "exitCode": 3}], "[0]"),
        ([{"exitCode": 0, "action": "AbortJob"}], "[0].exitCode"),
        ([{"exitCode": 3, "action": "AbortJob"}] * 2, "[1].exitCode"),
        ([RESTART, {**ABORT, "event": "*"}], ""),
    ],
)
def test_policies_are_what_volcano_takes(aliquot: Run, policies: list[Body], where: str) -> None:
    job = gang_job("a/j", task("x", 1), policies=policies)
    errors = [each for each in said(aliquot, node(), job, code=1) if each[0] == "error"]
    assert [field for _, field, _ in errors] == [f"spec.policies{where}"]
    of_task = gang_job("a/j", {**task("x", 1), "policies": policies})
    errors = [each for each in said(aliquot, node(), of_task, code=1) if each[0] == "error"]
    assert [field for _, field, _ in errors] == [f"spec.tasks[0].policies{where}"]


def test_policies_for_different_events_are_fine(aliquot: Run) -> None:
    policies = [RESTART, ABORT, {"exitCode": 3, "action": "AbortJob"}]
    policies += [{"exitCode": 4, "action": "RestartTask"}]
    job = gang_job("a/j", task("x", 1), policies=policies)
    assert said(aliquot, node(), job, code=0) == [
        ("warning", "spec.policies", "is not considered yet")
    ]


def test_a_priority_class_that_is_named_must_exist(aliquot: Run) -> None:
    expected = [("error", "spec.priorityClassName", "there is no PriorityClass vip")]
    assert said(aliquot, pod_group("a/g", priorityClassName="vip"), code=1) == expected
    job = gang_job("a/j", task("x", 1), priorityClassName="vip")
    assert said(aliquot, job, code=1) == expected


def test_only_leaves_take_pods(aliquot: Run) -> None:
    tree = [*QUEUES, queue("below", parent="q")]
    expected = "queue q is a parent and holds no pods; name one of its children (below)"
    member = annotated(pod("a/p", {"cpu": 1}), queue="q")
    assert said(aliquot, *tree, member, code=1) == [("error", NAMED, expected)]
    job = gang_job("a/j", task("x", 1), task("y", 1), queue="q", minAvailable=1)
    assert said(aliquot, *tree, job, code=1) == [("error", "spec.queue", expected)]
    step = timeline({"at": 5, "apply": [queue("below", parent="q")]})
    assert said(aliquot, *QUEUES, member, step, code=1) == [("error", NAMED, expected)]
    ran = aliquot("simulate", [*tree, member], "--policy", "capacity", "-o", "json")
    assert (ran.code, ran.err.count("(a cluster would refuse it)")) == (0, 1)


def test_a_queue_in_use_cannot_be_deleted(aliquot: Run) -> None:
    def deleted(name: str, *documents: Body) -> list[tuple[str, str, str]]:
        step = timeline({"at": 5, "delete": [deletion(name)]})
        return said(aliquot, *QUEUES, *documents, step, code=1)

    child = queue("below", parent="q")
    assert ("error", "", "cannot be deleted: it is the parent of below") in deleted("q", child)
    assert deleted("default", queue("default")) == [("error", "", "cannot be deleted")]
    member = annotated(pod("a/p"), queue="q")
    expected = "cannot be deleted: it is the queue of Pod a/p"
    assert deleted("q", member) == [("error", "", expected)]
    assert "there is no Queue x to delete" in deleted("x")[0][2]
    step = timeline({"at": 5, "delete": [deletion("q")]})
    assert said(aliquot, *QUEUES, step, code=0) == []


def test_a_simulation_refuses_what_breaks_a_rule_of_queues(aliquot: Run) -> None:
    for body, words in (
        (queue("x", weight=0), "Queue x: spec.weight: 0 is not between 1 and 65535"),
        (queue("x", parent="y"), "Queue x: spec.parent: there is no parent queue y"),
        (queue("x", {"cpu": 3}, {"cpu": 2}), "guarantee 3 is above capability 2"),
    ):
        assert words in refused(aliquot, node(), body)


def test_guarantees_of_queues_above_capacity_are_a_warning(aliquot: Run) -> None:
    ((severity, field, problem),) = said(aliquot, *QUEUES, queue("s", {"cpu": 1}), code=0)
    assert (severity, field) == ("warning", "spec.guarantee.resource[cpu]")
    assert problem == "with this quota, guarantees add up to 9 of 8 cpu that the nodes have"
    silent = [queue("top"), queue("s", {"cpu": 1}, parent="top")]
    assert said(aliquot, *QUEUES, *silent, code=0) == [(severity, field, problem)]
    below = queue("s", {"cpu": 1}, parent="q")
    assert said(aliquot, *QUEUES, below, code=0) == []


def test_a_pod_above_the_capability_of_its_queue_is_a_warning(aliquot: Run) -> None:
    job = gang_job("a/j", task("m", 1, {"cpu": 1}), task("w", 1, {"cpu": 7}), minAvailable=1)
    job["spec"]["queue"] = "q"
    assert said(aliquot, *QUEUES, job, code=0) == [
        (
            "warning",
            "spec.tasks[1].template.spec",
            "can never start: asks for 7 cpu, max is 6 in quota q",
        )
    ]


def test_a_namespace_weight_that_cannot_be_read_is_a_warning(aliquot: Run) -> None:
    body = resource_quota("a/rq", **{"volcano.sh/namespace.weight": "1500m", "cpu": 4})
    ((severity, field, problem),) = said(aliquot, body, code=0)
    assert (severity, field) == ("warning", "spec.hard[volcano.sh/namespace.weight]")
    assert problem == "'1500m' is no whole number of at least 1, and counts as 1"


def test_a_quota_and_a_queue_of_one_name_are_two(aliquot: Run) -> None:
    member = labelled(pod("a/p", {"cpu": 1}), name="q")
    (found,) = simulated(aliquot, *QUEUES, member)["pods"]
    assert found["quota"] is None


def test_jobs_of_two_groups_cannot_have_one_name(aliquot: Run) -> None:
    twice = [workload("Job", "a/j", {}), gang_job("a/j", task("x", 1))]
    assert "stands twice" in refused(aliquot, *twice)


def test_a_deserved_that_leaves_out_what_its_pods_ask_for_and_others_name(aliquot: Run) -> None:
    """The queue deserves none of it. What no `deserved` names, such as memory, is no matter."""
    gpus = queue("gpus", deserved={"nvidia.com/gpu": 4})
    cpus = queue("cpus", deserved={"cpu": 16, "nvidia.com/gpu": 4})
    free = queue("free")
    train = annotated(pod("a/train", {"gpu": 1, "cpu": 2, "memory": "1Gi"}), queue="gpus")
    others = [
        annotated(pod("a/both", {"gpu": 1, "cpu": 2}), queue="cpus"),
        annotated(pod("a/all", {"gpu": 1, "cpu": 2}), queue="free"),
    ]
    found = validated(aliquot, gpus, cpus, free, train, *others, code=0, config=CONFIG)
    assert [
        (each["severity"], each["object"], each["field"], each["problem"]) for each in found
    ] == [
        (
            "warning",
            "Queue gpus",
            "spec.deserved",
            "does not name cpu, which Pod a/train asks for and the deserved of queue cpus names: "
            "the queue deserves none of it, and its pods can be evicted for it",
        )
    ]


def test_the_pods_of_a_queue_below_one_with_a_deserved_count_as_well(aliquot: Run) -> None:
    above = queue("above", deserved={"nvidia.com/gpu": 4})
    below, other = queue("below", parent="above"), queue("other", deserved={"cpu": 4})
    train = annotated(pod("a/train", {"gpu": 1, "cpu": 2}), queue="below")
    (found,) = validated(aliquot, above, below, other, train, code=0, config=CONFIG)
    assert (found["object"], found["field"]) == ("Queue above", "spec.deserved")
