"""Cures of cases written by hand, under every policy; each is carried out in a simulation.

What is expected is what a platform engineer would do: the first of these, and by what amounts.
"""

from typing import Any

import pytest

from aliquot.json import Body
from tests.properties.test_cures import check_answer
from tests.questions.test_explanation import GPU, explain, node, pod, quota, summaries

QUEUE = "scheduling.volcano.sh/queue-name"
TREE = "quota.scheduling.koordinator.sh/"
GANG = "gang.scheduling.koordinator.sh/"
TENSOR_FUSION = "tensor-fusion.ai/"
CARDS = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.memory": "40960"}


def _queue(name: str, **spec: Any) -> Body:
    state = spec.pop("state", None)
    body: Body = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, **spec},
    }
    return body if state is None else {**body, "status": {"state": state}}


def _annotated(body: Body, **annotations: str) -> Body:
    body["metadata"]["annotations"] = annotations
    return body


def _in_queue(path: str, gpus: int, queue: str, on: str | None = None, **more: str) -> Body:
    return _annotated(pod(path, gpus, on), **{QUEUE: queue, **more})


def _labelled(body: Body, **labels: str) -> Body:
    body["metadata"].setdefault("labels", {}).update(labels)
    return body


def _tree(name: str, low: int, high: int) -> Body:
    body = quota(name, low, high)
    body["metadata"]["name"] = name
    return _labelled(body, **{f"{TREE}is-parent": "false"})


def _deployment(path: str, replicas: int, **spec: Any) -> Body:
    namespace, _, name = path.partition("/")
    labels, template = {"app": name}, pod(path, 1, **spec)["spec"]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template},
        },
    }


def _job(kind: str, version: str, spec: Body, **annotations: str) -> Body:
    metadata: Body = {"name": "j", "namespace": "a", "annotations": annotations}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def _template(**spec: Any) -> Body:
    return {"spec": pod("a/x", 1, **spec)["spec"]}


def _pytorch_job(*annotations: str, **spec: Any) -> Body:
    worker = {"replicas": 2, "template": _template(**spec)}
    asked = dict.fromkeys(annotations, "zone")
    return _job(
        "PyTorchJob", "kubeflow.org/v1", {"pytorchReplicaSpecs": {"Worker": worker}}, **asked
    )


def _job_set(**spec: Any) -> Body:
    written = {"parallelism": 2, "completions": 2, "template": _template(**spec)}
    jobs = [{"name": "w", "replicas": 1, "template": {"spec": written}}]
    return _job("JobSet", "jobset.x-k8s.io/v1alpha2", {"replicatedJobs": jobs})


def _gpu_quota(**spec: Any) -> Body:
    kind = {"apiVersion": "tensor-fusion.ai/v1", "kind": "GPUResourceQuota"}
    return {**kind, "metadata": {"name": "gpus", "namespace": "a"}, "spec": spec}


def _part(path: str, tflops: str, on: str | None = None) -> Body:
    body = pod(path, 0, on)
    del body["spec"]["containers"][0]["resources"]
    asks = {"gpu-count": "1", "tflops-request": tflops, "vram-request": "1Gi"}
    return _annotated(body, **{f"{TENSOR_FUSION}{key}": value for key, value in asks.items()})


def _memory_quota() -> Body:
    memory = "nos.nebuly.com/gpu-memory"
    body = quota("a", 0)
    body["apiVersion"] = "nos.nebuly.com/v1alpha1"
    body["spec"] = {"min": {memory: "40"}, "max": {memory: "40"}}
    return body


def _ports(body: Body) -> Body:
    body["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    return body


_TAINTED = node("n", taints=[{"key": "own", "value": "b", "effect": "NoSchedule"}])
_CASES: dict[str, tuple[str, list[Body], str, list[str]]] = {
    "a min above max raises both, and says so": (
        "capacity",
        [node("n"), quota("a", 4, 6), pod("a/r", 5, "n"), pod("a/x", 2)],
        "a/x",
        [f"raise min of quota a/quota from 4 to 7 {GPU}, and its max from 6 to 7", "delete a/r"],
    ),
    "pods of the same Deployment come before it": (
        "capacity",
        [node("n"), quota("a", 2, 4), _deployment("a/d", 6)],
        "a/d-5",
        [f"raise min of quota a/quota from 2 to 6 {GPU}, and its max from 4 to 6"],
    ),
    "pods before it take the first node that is added": (
        "capacity",
        [node("n", 2), quota("a", 8), _deployment("a/d", 6)],
        "a/d-5",
        ["add 2 nodes like n"],
    ),
    "the template of a Deployment": (
        "capacity",
        [node("n"), _deployment("a/d", 2, nodeSelector={"zone": "y"})],
        "a/d-0",
        ["remove zone=y from its node selector", "change its node selector to zone=n"],
    ),
    "a taint": (
        "capacity",
        [_TAINTED, pod("a/x", 1)],
        "a/x",
        ["let it tolerate the taint own, as of node n", "remove taint own of node n"],
    ),
    "a port that is taken": (
        "capacity",
        [node("n"), _ports(pod("a/r", 1, "n")), _ports(pod("a/x", 1))],
        "a/x",
        ["add a node like n", "delete a/r"],
    ),
    "two gates need two changes, of which there are several": (
        "capacity",
        [node("n", 4), quota("a", 4, 4), pod("a/r", 4, "n"), pod("a/x", 2)],
        "a/x",
        ["delete a/r"],
    ),
    "the least that is raised comes alone": (
        "capacity",
        [node("n"), quota("a", 4), quota("b", 4), quota("c", 0), pod("c/r", 8, "n"), pod("a/x", 6)],
        "a/x",
        ["delete c/r", f"raise min of quota a/quota from 4 to 6 {GPU}"],
    ),
    "GPU memory in the spelling of the object": (
        "fair",
        [_labelled(node("n"), **CARDS), _memory_quota(), pod("a/x", 2)],
        "a/x",
        [
            "raise min of quota a/quota from 40 to 80 nos.nebuly.ai/gpu-memory, "
            "and its max from 40 to 80"
        ],
    ),
    "a gang that pods declare": (
        "capacity",
        [
            node("n"),
            *(
                _annotated(pod(f"a/{name}", 1), **{f"{GANG}name": "g", f"{GANG}min-available": "3"})
                for name in "xy"
            ),
        ],
        "a/x",
        ["let gang a/g start with 2 pods"],
    ),
    "a pod that is not preemptible": (
        "hierarchy",
        [
            *(node("n"), _tree("a", 2, 8)),
            *(
                _labelled(pod(f"a/{name}", 2, on), **{f"{TREE}preemptible": "false"})
                for name, on in (("r", "n"), ("x", None))
            ),
        ],
        "a/x",
        [
            f"raise min of quota a/a from 2 to 4 {GPU}",
            f"let it be preempted: remove its label {TREE}preemptible",
        ],
    ),
    "a queue that is closed": (
        "queues",
        [node("n"), _queue("p", state="Closed"), _queue("q"), _in_queue("a/x", 1, "p")],
        "a/x",
        ["move it to queue q"],
    ),
    "a queue that is missing": (
        "queues",
        [node("n"), _queue("q"), _in_queue("a/x", 1, "p")],
        "a/x",
        ["move it to queue q", "add the queue p"],
    ),
    "the capability of a queue": (
        "queues",
        [
            *(node("n"), _queue("p", capability={GPU: "4"})),
            *(_in_queue("a/r", 4, "p", "n"), _in_queue("a/x", 2, "p")),
        ],
        "a/x",
        [f"raise capability of queue p from 4 to 6 {GPU}", "delete a/r"],
    ),
    "a queue that gives nothing back": (
        "queues",
        [
            *(node("n"), _queue("p"), _queue("q", reclaimable=False)),
            *(_in_queue("b/r", 8, "q", "n"), _in_queue("a/x", 2, "p")),
        ],
        "a/x",
        ["add a node like n", "delete b/r", "set reclaimable of queue q to true"],
    ),
    "idle room, for a pod that may be preempted": (
        "queues",
        [
            *(node("n"), _queue("p"), _queue("q")),
            *(_in_queue("a/r", 4, "p", "n"), _in_queue("b/r", 2, "q", "n")),
            _in_queue("a/x", 2, "p", **{"volcano.sh/preemptable": "false"}),
            _in_queue("b/x", 4, "q"),
        ],
        "a/x",
        [
            f"raise guarantee of queue p to 6 {GPU}",
            "raise weight of queue p to 6",
            "let it be preempted: remove its annotation volcano.sh/preemptable",
            "add a node like n",
            "delete a/r",
        ],
    ),
    "the template of a PyTorchJob": (
        "capacity",
        [node("n"), _pytorch_job(nodeSelector={"zone": "y"})],
        "a/j-0",
        ["remove zone=y from its node selector", "change its node selector to zone=n"],
    ),
    "the template of a JobSet, which stands in a list": (
        "capacity",
        [node("n"), _job_set(schedulingGates=[{"name": "example.com/g"}])],
        "a/j-1",
        ["remove the scheduling gates example.com/g"],
    ),
    "the template of a Volcano Job": (
        "queues",
        [
            node("n"),
            _job(
                *("Job", "batch.volcano.sh/v1alpha1"),
                {
                    "minAvailable": 2,
                    "tasks": [
                        {"name": "m", "replicas": 1, "template": _template()},
                        {
                            "name": "w",
                            "replicas": 1,
                            "template": _template(nodeSelector={"zone": "y"}),
                        },
                    ],
                },
            ),
        ],
        "a/j-1",
        ["remove zone=y from its node selector", "change its node selector to zone=n"],
    ),
    "a job that asks for one domain": (
        "capacity",
        [node("n", 1), node("m", 1), _pytorch_job("aliquot.dev/topology-required")],
        "a/j-0",
        ["let gang a/pytorchjob-j start on any nodes", "add a node like n"],
    ),
    "what it asks of a GPU": (
        "capacity",
        [
            _labelled(node("n"), **CARDS),
            _gpu_quota(total={"requests": {"tflops": "200"}}),
            *(_part("a/r", "150", "n"), _part("a/x", "100")),
        ],
        "a/x",
        [
            "raise total.max.tflops.request of GPU quota a/gpus to 250",
            "lower its tflops-request from 100 to 50",
            "delete a/r",
        ],
    ),
    "the largest part of a GPU": (
        "capacity",
        [
            _labelled(node("n"), **CARDS),
            _gpu_quota(single={"maxRequests": {"tflops": "50"}}),
            _part("a/x", "100"),
        ],
        "a/x",
        [
            "raise single.max.tflops.request of GPU quota a/gpus to 100",
            "lower its tflops-request from 100 to 50",
        ],
    ),
}


@pytest.mark.parametrize("case", _CASES)
def test_the_cures_of(case: str) -> None:
    policy, objects, path, expected = _CASES[case]
    found = [
        cure["summary"]
        for cure in check_answer(objects, policy, path)
        if all(change["how"] != "wait" for change in cure["changes"])
    ]
    assert found == expected


def test_a_victim_that_terminates_already_is_waited_for() -> None:
    leaving = pod("a/r", 8, "n")
    leaving["metadata"] |= {
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 300,
    }
    answer = explain("a/x", node("n"), quota("a", 8), leaving, pod("a/x", 4))
    assert answer["reason"] == "WaitingForVictims"
    assert summaries(answer) == ["wait for a/r, which terminates, to be gone"]


def test_on_a_large_cluster_what_others_preempt_meanwhile_is_not_blamed_on_a_cure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its cycles are bounded, here to one search: the claims of the owner go on preempting."""
    monkeypatch.setattr("aliquot.questions.moment.MANY_PODS", 0)
    monkeypatch.setattr("aliquot.engine.queue.effort._SEARCH_SCALE", 0)
    monkeypatch.setattr("aliquot.engine.queue.effort._FEWEST_SEARCHES", 1)
    borrowed = [pod(f"b/r{number}", 1, f"n{number}") for number in range(20)]
    nodes = [node(each["spec"]["nodeName"], 1) for each in borrowed]
    claims = [pod(f"a/c{number}", 1) for number in range(20)]
    own = {"key": "own", "effect": "NoSchedule"}
    asked = pod("z/x", 2, priority=5, nodeSelector={"zone": "m"}, tolerations=[own])
    other = [node("m", 2, taints=[own]), quota("z", 1, 1), asked]
    answer = explain(
        "z/x", *nodes, *other, quota("a", 20), quota("b", 0), quota("c", 9), *borrowed, *claims
    )
    assert answer["reason"] == "QuotaMaxExceeded"
    assert [each["evicts"] for each in answer["cures"]] == [[]] * len(answer["cures"]) != []


def test_no_cure_gives_a_team_the_priority_of_the_system() -> None:
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        | {"value": value}
        for name, value in [("high", 100), ("system-cluster-critical", 2_000_000_000)]
    ]
    running = pod("a/r", 2, "n")
    answer = explain("a/x", node("n", 2), quota("a", 2), running, pod("a/x", 2), *classes)
    given = [each["summary"] for each in answer["cures"] if "priority class" in each["summary"]]
    assert given == ["give it the priority class high"]
