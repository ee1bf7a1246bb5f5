"""Explanations of pods and quotas: every gate, protection, cures, pods that run or are gone."""

import json
from pathlib import Path
from typing import Any

import pytest

from aliquot.dialects.core.documents import Document, parse
from aliquot.dialects.core.times import timestamp
from aliquot.errors import ArgumentError
from aliquot.json import Body
from aliquot.questions.explanation import explain_pod
from aliquot.questions.explanation_of_quotas import explain_quota
from aliquot.questions.moment import Moment
from aliquot.questions.sources.source import Source

GPU = "nvidia.com/gpu"
Answer = dict[str, Any]


def node(name: str, gpus: int = 8, **spec: Any) -> Body:
    has = {"cpu": "64", GPU: str(gpus), "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"zone": name}},
        "spec": spec,
        "status": {"allocatable": has, "capacity": has},
    }


def quota(namespace: str, low: int, high: int | None = None) -> Body:
    bounds: Body = {"min": {GPU: str(low)}}
    if high is not None:
        bounds["max"] = {GPU: str(high)}
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "quota", "namespace": namespace},
        "spec": bounds,
    }


def pod(path: str, gpus: int, on: str | None = None, **spec: Any) -> Body:
    namespace, _, name = path.partition("/")
    resources = {"limits": {GPU: str(gpus)}}
    body: Body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": resources}], **spec},
    }
    if on is not None:
        body["spec"]["nodeName"] = on
    return body


def explain(path: str, *objects: Body, policy: str | None = None) -> Answer:
    documents = [Document(f"object {number}", body) for number, body in enumerate(objects)]
    answer = explain_pod(Moment(Source("", documents, policy=policy)), path)
    assert json.loads(json.dumps(answer)) == answer
    return answer


def summaries(answer: Answer) -> list[str]:
    return [cure["summary"] for cure in answer["cures"]]


def refusing(answer: Answer) -> list[str]:
    return [gate["gate"] for gate in answer["gates"] if not gate["passes"]]


def test_every_gate_that_refuses_is_named() -> None:
    answer = explain("a/big", node("n", 4), quota("a", 4, 6), pod("a/one", 4, "n"), pod("a/big", 4))
    assert answer["reason"] == "QuotaMaxExceeded"
    assert refusing(answer) == ["Max", "Borrowing", "Nodes"]
    assert answer["nodes"] == {
        "total": 1,
        "feasible": 0,
        "refused": [{"reason": "NodeResourcesFit", "count": 1}],
    }


def test_a_pod_that_would_start_is_said_to_start() -> None:
    answer = explain("a/one", node("n"), quota("a", 4), pod("a/one", 1))
    assert answer["reason"] is None
    assert answer["cures"] == []
    assert "starts in the next cycle, on n" in answer["message"]


def test_a_pod_that_preempts_names_its_victims() -> None:
    answer = explain(
        "a/own", node("n", 4), quota("a", 2), quota("b", 2), pod("b/lent", 4, "n"), pod("a/own", 2)
    )
    assert answer["preemption"]["possible"]
    assert answer["preemption"]["victims"] == ["b/lent"]
    assert "in place of b/lent" in answer["message"]


def test_a_max_is_raised_by_exactly_so_much() -> None:
    answer = explain(
        "a/more", node("n"), quota("a", 2, 3), quota("b", 4), pod("a/one", 2, "n"), pod("a/more", 2)
    )
    cure = next(each for each in answer["cures"] if each["changes"][0]["how"] == "patch")
    assert cure["summary"] == "raise max of quota a/quota from 3 to 4 nvidia.com/gpu"
    assert cure["changes"] == [
        {
            "how": "patch",
            "object": {"kind": "ElasticQuota", "namespace": "a", "name": "quota"},
            "patch": {"spec": {"max": {GPU: "4"}}},
            "add": None,
        }
    ]
    assert cure["evicts"] == []


def test_a_min_that_is_raised_takes_back_what_others_borrow() -> None:
    answer = explain(
        "a/one", node("n", 4), quota("a", 0), quota("b", 4), pod("b/lent", 4, "n"), pod("a/one", 1)
    )
    cures = {each["summary"]: each["evicts"] for each in answer["cures"]}
    assert "add a node like n" not in cures  # the sum of min refuses it as well
    answer = explain(
        "a/one", node("n", 4), quota("a", 0), quota("b", 2), pod("b/lent", 4, "n"), pod("a/one", 1)
    )
    cures = {each["summary"]: each["evicts"] for each in answer["cures"]}
    assert cures["raise min of quota a/quota from 0 to 1 nvidia.com/gpu"] == ["b/lent"]


@pytest.mark.parametrize(
    ("objects", "gate", "summary"),
    [
        (
            [node("n", taints=[{"key": "own", "effect": "NoSchedule"}]), pod("a/x", 1)],
            "Nodes",
            "remove taint own of node n",
        ),
        ([node("n", unschedulable=True), pod("a/x", 1)], "Nodes", "uncordon node n"),
        (
            [node("n"), pod("a/x", 1, nodeSelector={"zone": "y"})],
            "Nodes",
            "change its node selector to zone=n",
        ),
        ([node("n"), pod("a/x", 9)], "Nodes", "lower its request from 9 to 8 nvidia.com/gpu"),
        ([node("n", 2), pod("a/w", 1, "n"), pod("a/x", 2)], "Nodes", "wait for a/w to end"),
        ([node("n", 2), pod("a/w", 1, "n"), pod("a/x", 2)], "Nodes", "add a node like n"),
        (
            [node("n"), pod("a/x", 1, schedulingGates=[{"name": "example.com/hold"}])],
            "SchedulingGates",
            "remove the scheduling gates example.com/hold",
        ),
        (
            [
                node("n", 1),
                pod("a/w", 1, "n"),
                pod("a/x", 1, priority=5, preemptionPolicy="Never"),
            ],
            "Nodes",
            "let it preempt: preemptionPolicy PreemptLowerPriority",
        ),
    ],
)
def test_what_refuses_is_cured(objects: list[Body], gate: str, summary: str) -> None:
    answer = explain("a/x", *objects)
    assert gate in refusing(answer)
    assert summary in summaries(answer)


def test_two_gates_need_two_changes() -> None:
    tainted = node("m", taints=[{"key": "own", "effect": "NoSchedule"}])
    answer = explain(
        "a/x",
        *(node("n", 2), tainted, quota("a", 1, 1), quota("b", 4)),
        *(pod("b/w", 2, "n"), pod("a/x", 2)),
    )
    assert refusing(answer) == ["Max", "Nodes"]
    both = next(each for each in answer["cures"] if "own of node m" in each["summary"])
    assert [change["how"] for change in both["changes"]] == ["patch", "patch"]
    assert both["evicts"] == []


def test_where_nothing_helps_it_says_so() -> None:
    answer = explain("a/x", pod("a/x", 1))
    assert answer["cures"] == []
    assert "no change of up to three objects" in answer["message"]


def test_what_protects_the_pods_in_the_way_is_said() -> None:
    answer = explain(
        "a/x", node("n", 2), quota("a", 0), quota("b", 2), pod("b/w", 2, "n"), pod("a/x", 1)
    )
    assert not answer["preemption"]["possible"]
    assert "1 pod of quota b/quota within its min" in answer["preemption"]["why"]


def test_nodes_are_no_gate_of_a_pod_whose_volume_claim_is_missing() -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]
    answer = explain("a/x", node("n"), pod("a/x", 1, volumes=volumes))
    assert [(each["gate"], each["passes"]) for each in answer["gates"]] == [("Volumes", False)]
    assert answer["nodes"]["feasible"] == 0


def test_an_estimate_rests_on_known_ends() -> None:
    ends = pod("a/w", 2, "n", activeDeadlineSeconds=90)
    answer = explain("a/x", node("n", 2), ends, pod("a/x", 1))
    assert answer["estimate"] == {"seconds": 90, "p10": 90, "p90": 90, "basis": "known ends"}
    unknown = explain("a/x", node("n", 2), pod("a/w", 2, "n"), pod("a/x", 1))
    assert unknown["estimate"] is None


EVENING = "2026-01-01T18:00:00Z"


def until_seven(path: str) -> Body:
    """A pod that started at five and may run for two hours."""
    body = pod(path, 2, "n", activeDeadlineSeconds=7200)
    body["status"] = {"phase": "Running", "startTime": "2026-01-01T17:00:00Z"}
    return body


@pytest.mark.parametrize(
    "shown",
    [
        {"kind": "Lease", "spec": {"renewTime": "2026-01-01T18:00:00.000000Z"}},
        {"kind": "Event", "lastTimestamp": EVENING},
        {"kind": "Event", "series": {"lastObservedTime": EVENING}},
        {"kind": "ConfigMap", "metadata": {"creationTimestamp": EVENING}},
        {"kind": "ConfigMap", "metadata": {"managedFields": [{"time": EVENING}]}},
        {"kind": "Widget", "status": {"conditions": [{"lastTransitionTime": EVENING}]}},
        {"kind": "Widget", "status": {"completionTime": "2026-01-01T19:00:00+01:00"}},
    ],
)
def test_the_age_of_a_pod_in_a_dump_counts_to_the_latest_time_that_it_shows(shown: Body) -> None:
    """Its last start was an hour before; what comes later or lies ahead is no evidence."""
    version = {"Lease": "coordination.k8s.io/v1", "Widget": "example.com/v1"}
    metadata = {"name": "shown", "namespace": "a", **shown.get("metadata", {})}
    late = pod("a/late", 1)
    late["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    late["metadata"]["annotations"] = {"sim.aliquot.dev/arrival": "0s"}
    leaving = {**pod("a/leaving", 1), "status": {"conditions": [{"lastProbeTime": None}]}}
    leaving["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    seen = {"apiVersion": version.get(shown["kind"], "v1"), **shown, "metadata": metadata}
    answer = explain("a/x", node("n", 2), until_seven("a/w"), pod("a/x", 1), seen, late, leaving)
    assert answer["estimate"]["seconds"] == 3600


def test_the_age_of_a_pod_counts_to_the_moment_at_which_a_cluster_was_read() -> None:
    waits = pod("a/x", 1, schedulerName="aliquot")
    documents = [
        Document(f"object {number}", body)
        for number, body in enumerate([node("n", 2), until_seven("a/w"), waits])
    ]

    def seconds(read_at: str | None) -> float:
        taken = timestamp(read_at, "", "")
        answer = explain_pod(Moment(Source("", documents, taken=taken)), "a/x")
        return float(answer["estimate"]["seconds"])

    assert seconds(EVENING) == 3600
    assert seconds("2026-01-01T16:59:00Z") == 7200  # its clock is behind: the pod has just started


@pytest.mark.parametrize(
    ("until", "paused"),
    [("", True), ("2026-01-01T19:00:00Z", True), ("2026-01-01T17:00:00Z", False)],
)
def test_while_evictions_are_paused_no_pod_makes_way(until: str, paused: bool) -> None:
    said = json.dumps({"by": "alice", **({"until": until} if until else {})})
    home = {"name": "aliquot-system", "annotations": {"aliquot.dev/evictions-paused": said}}
    waits = pod("a/x", 1, schedulerName="aliquot")
    bodies: list[Body] = [node("n", 2), quota("a", 1), quota("b", 0), pod("b/w", 2, "n"), waits]
    bodies.append({"apiVersion": "v1", "kind": "Namespace", "metadata": home})
    documents = [Document(f"object {number}", body) for number, body in enumerate(bodies)]
    answer = explain_pod(Moment(Source("", documents, taken=timestamp(EVENING, "", ""))), "a/x")
    assert ("evictions are paused by alice" in answer["message"]) == paused
    assert (answer["preemption"]["victims"] == []) == paused


def test_a_running_pod_names_who_could_take_its_place() -> None:
    objects = (node("n", 4), quota("a", 2), quota("b", 2), pod("b/w", 4, "n"))
    answer = explain("b/w", *objects)
    assert answer["phase"] == "Running"
    assert answer["running"]["capacity"] == "over-quota"
    assert any("a/quota" in each for each in answer["running"]["evictableBy"])


def test_an_evicted_pod_is_told_from_its_events() -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "b"},
        "involvedObject": {"kind": "Pod", "namespace": "b", "name": "gone"},
        "reason": "Preempted",
        "message": "ReclaimedForMin: evicted for a/own: quota a takes back its min",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    answer = explain("b/gone", node("n"), event)
    assert answer["phase"] == "Evicted"
    assert answer["eviction"] == {
        "at": "2026-01-01T00:00:00Z",
        "for": "a/own",
        "reason": "ReclaimedForMin",
        "message": "quota a takes back its min",
        "quotas": {},
    }


def test_an_evicted_pod_is_told_from_the_decision_log() -> None:
    figures = {"used": {GPU: "8"}, "min": {GPU: "4"}, "max": {}}
    evicted = {
        **{"at": "2026-01-01T00:00:00Z", "what": "evicted", "pod": "b/gone", "for": "a/own"},
        **{"reason": "ReclaimedForMin", "message": "quota a takes back its min"},
        "quotas": {"b/quota": figures},
    }
    log = [{**evicted, "what": "started"}, evicted, {**evicted, "what": "waits", "pod": "b/gone"}]
    moment = Moment(Source("", [Document("n", node("n"))]))
    answer = explain_pod(moment, "b/gone", lambda path: [e for e in log if e["pod"] == path])
    assert (answer["phase"], answer["reason"]) == ("Evicted", "ReclaimedForMin")
    assert answer["message"] == "it was evicted for a/own: quota a takes back its min"
    assert answer["eviction"]["quotas"] == {"b/quota": figures}
    with pytest.raises(ArgumentError):
        explain_pod(moment, "b/never", lambda _: [])


def test_pods_that_have_just_started_tell_nothing_of_how_long_they_run() -> None:
    running = [pod(f"a/r{i}", 1, "n") for i in range(8)]
    assert explain("a/x", node("n"), *running, pod("a/x", 1))["estimate"] is None


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "Job"])
def test_pods_that_are_kept_running_are_not_expected_to_end(kind: str) -> None:
    controller = {"apiVersion": "v1", "kind": kind, "name": "r", "controller": True}
    running = [pod(f"a/r{i}", 1, "n") for i in range(8)]
    for each in running:
        each["metadata"]["ownerReferences"] = [controller]
        each["status"] = {"phase": "Running", "startTime": "2026-01-01T17:00:00Z"}
    event = {"apiVersion": "v1", "kind": "Event", "lastTimestamp": EVENING, "metadata": {}}
    answer = explain("a/x", node("n"), *running, pod("a/x", 1), event)
    assert (answer["estimate"] is not None) is (kind == "Job")


def test_a_gang_over_several_quotas_says_what_is_in_its_way() -> None:
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "a"},
        "spec": {"minMember": 2},
    }
    tree = "quota.scheduling.koordinator.sh/"
    quotas = [quota("a", 1), quota("b", 1), quota("c", 2)]
    for each in quotas:
        each["metadata"]["name"] = each["metadata"]["namespace"]
        each["metadata"]["labels"] = {f"{tree}is-parent": "false"}
    quotas[1]["metadata"]["annotations"] = {f"{tree}namespaces": '["a"]'}
    members = [pod("a/x", 1), pod("a/y", 1)]
    for each, name in zip(members, ("a", "b"), strict=True):
        each["metadata"]["labels"] = {
            f"{tree}name": name,
            "scheduling.x-k8s.io/pod-group": "g",
        }
    answer = explain("a/x", node("n", 2), group, *quotas, pod("c/w", 2, "n"), *members)
    assert "1 pod of quota c/c within its runtime" in answer["preemption"]["why"]


@pytest.mark.parametrize("path", ["a/none", "none", "a/b/c"])
def test_a_pod_that_is_not_there_is_refused(path: str) -> None:
    with pytest.raises(ArgumentError):
        explain(path, node("n"), pod("a/x", 1))


def test_a_quota_says_what_it_lends_and_borrows() -> None:
    objects = (
        *(node("n"), quota("a", 4), quota("b", 4)),
        *(pod("a/w", 1, "n"), pod("b/w", 6, "n"), pod("b/x", 4)),
    )
    documents = [Document(f"object {number}", body) for number, body in enumerate(objects)]
    lender, borrower = (
        explain_quota(Moment(Source("", documents)), name) for name in ("a/quota", "b/quota")
    )
    assert lender["lends"] == {GPU: "2"}
    assert lender["lendsTo"] == [{"quota": "b/quota", "borrows": {GPU: "2"}}]
    assert borrower["borrowsFrom"] == [{"quota": "a/quota", "idle": {GPU: "3"}}]
    assert [each["pod"] for each in borrower["waiting"]] == ["b/x"]
    with pytest.raises(ArgumentError, match="did you mean a/quota"):
        explain_quota(Moment(Source("", documents)), "a/quotta")


def test_a_gpu_quota_is_raised() -> None:
    text = Path("examples/tensor-fusion/refusals/cluster.yaml").read_text()
    documents = list(parse(text, "cluster.yaml"))
    moment = Moment(Source("", documents))
    waiting = [r.pod.path for r in moment.simulation.world.mirror.records.values() if r.alive]
    found = [explain_pod(Moment(Source("", documents)), path) for path in waiting]
    words = [cure["summary"] for each in found for cure in each["cures"]]
    assert any("of GPU quota" in each for each in words), words
