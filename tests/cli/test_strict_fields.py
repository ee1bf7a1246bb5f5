"""Nothing that a user wrote is ignored in silence: unknown fields, versions, kinds and names."""

import json
from typing import Any

import pytest

from aliquot.dialects.schemas import kubernetes
from aliquot.json import Body
from aliquot.version import KUBERNETES
from tests.build.manifests import (
    deployment,
    gang_job,
    gpu_quota,
    job,
    node,
    pod,
    quota,
    task,
    timeline,
    workload,
)
from tests.cli.conftest import Run

GPU = "nvidia.com/gpu"
SERVED = {"uid": "0f1e", "resourceVersion": "4711"}


def found(aliquot: Run, *documents: Any, code: int = 1) -> list[tuple[str, str, str]]:
    ran = aliquot("validate", list(documents), "-o", "json")
    assert ran.code == code, ran.out + ran.err
    return [
        (each["severity"], each["field"], each["problem"])
        for each in json.loads(ran.out)["findings"]
    ]


def served(body: Body, **more: Any) -> Body:
    return {**body, "metadata": {**body["metadata"], **SERVED, **more}}


def test_the_version_names_the_release_whose_fields_are_known(aliquot: Run) -> None:
    assert aliquot("--version").out.rstrip().endswith(f"(Kubernetes {KUBERNETES})")
    assert kubernetes.version() == KUBERNETES


def test_every_bad_field_of_an_object_is_named(aliquot: Run) -> None:
    bad = quota("a", {"cpu": "x", "memory": "-1", "gpu": "1500m"})
    assert [(each[0], each[1]) for each in found(aliquot, bad)] == [
        ("error", f"spec.min[{name}]") for name in ("cpu", "memory", GPU)
    ]
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "q"},
        "spec": {"weight": 0, "priority": -1, "reclaimable": "yes", "capability": {"cpu": "x"}},
    }
    fields = [each[1] for each in found(aliquot, queue)]
    assert fields == ["spec.capability[cpu]", "spec.priority", "spec.reclaimable", "spec.weight"]


def test_a_document_that_cannot_be_read_is_checked_as_far_as_it_goes(aliquot: Run) -> None:
    nameless = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "A", "label": {}},
        "spec": {"containers": {}, "tolerations": [{"operator": "Foo"}]},
    }
    fields = {each[1] for each in found(aliquot, nameless)}
    assert fields >= {"metadata.name", "metadata.namespace", "metadata.label", "spec.containers"}
    assert aliquot("validate", [pod("a/p"), ["no", "object"]]).out.count("(line ") == 1


def test_a_rule_is_checked_beside_a_field_that_cannot_be_read(aliquot: Run) -> None:
    bad = quota("a", {"cpu": "x", "memory": 4}, {"cpu": 1, "memory": 2})
    assert [each[1] for each in found(aliquot, bad)] == ["spec.min[cpu]", "spec.min[memory]"]


@pytest.mark.parametrize(
    ("document", "unknown", "meant"),
    [
        ({**quota("a", {}), "spec": {"mim": {"cpu": 1}}}, "spec.mim", "spec.min"),
        ({**quota("a", {}), "spce": {}}, "spce", "spec"),
        (
            {**quota("a", {}), "metadata": {"name": "q", "label": {}}},
            "metadata.label",
            "metadata.labels",
        ),
        (
            deployment("a/d", replica=2),
            "spec.replica",
            "spec.replicas",
        ),
        (pod("a/p", container=[]), "spec.container", "spec.containers"),
        (
            pod("a/p", containers=[{"name": "c", "resource": {"limits": {GPU: 8}}}]),
            "spec.containers[0].resource",
            "spec.containers[0].resources",
        ),
        (
            pod("a/p", containers=[{"name": "c", "requests": {GPU: 8}}]),
            "spec.containers[0].requests",
            "spec.containers[0].resources.requests",
        ),
        (
            workload("Job", "a/j", {}, nodeSelector={"a": "b"}),
            "spec.nodeSelector",
            "spec.template.spec.nodeSelector",
        ),
        (
            gpu_quota("a/g", {"request": {"tflops": 1}}),
            "spec.total.request",
            "spec.total.requests",
        ),
    ],
)
def test_an_unknown_field_is_refused_with_the_nearest_one(
    aliquot: Run, document: Body, unknown: str, meant: str
) -> None:
    problem = f"unknown field {unknown}; did you mean {meant}?"
    assert ("error", unknown, problem) in found(aliquot, document)
    ran = aliquot("simulate", [document])
    assert (ran.code, ran.out) == (2, "")
    assert problem in ran.err


def test_a_kind_that_is_skipped_does_not_stop_a_simulation(aliquot: Run) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"port": 80},
    }
    assert [each[1] for each in found(aliquot, service)] == ["spec.port"]
    ran = aliquot("simulate", [service, node()])
    assert (ran.code, ran.err.count("a cluster would refuse it")) == (0, 1)


@pytest.mark.parametrize(
    ("version", "kind", "meant"),
    [
        ("scheduling.x-k8s.io/v1", "ElasticQuota", "scheduling.x-k8s.io/v1alpha1"),
        ("policy/v1beta1", "PodDisruptionBudget", "policy/v1"),
        ("v2", "Pod", "v1"),
    ],
)
def test_an_unknown_version_is_refused(aliquot: Run, version: str, kind: str, meant: str) -> None:
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": {}}
    problem = f"unknown version {version} of {kind}; did you mean {meant}?"
    assert ("error", "apiVersion", problem) in found(aliquot, body)


def test_a_simulation_reads_an_old_version_and_warns(aliquot: Run) -> None:
    ran = aliquot("simulate", [node(), {**quota("a", {}), "apiVersion": "scheduling.x-k8s.io/v1"}])
    assert ran.code == 0
    assert "unknown version scheduling.x-k8s.io/v1" in ran.err
    assert "a cluster would refuse it" in ran.err


def test_what_only_a_server_refuses_does_not_stop_a_simulation(aliquot: Run) -> None:
    body = pod("a/p", containers=[{"name": "c", "workingDir": 5}], nodeSelector={"fast": True})
    assert [each[1] for each in found(aliquot, body)] == [
        "spec.containers[0].workingDir",
        "spec.nodeSelector[fast]",
    ]
    assert aliquot("simulate", [node(), body]).code == 0


@pytest.mark.parametrize(
    ("version", "kind", "problem"),
    [
        ("cert-manager.io/v1", "Certificate", "is not known here, and not checked"),
        ("batch.volcano.sh/v1alpha1", "CronJob", "is not known here, and not checked"),
        (
            "scheduling.koordinator.sh/v1alpha1",
            "PodGroup",
            "did you mean PodGroup of scheduling.sigs.k8s.io/v1alpha1?",
        ),
        ("apps/v1", "Deploymnet", "did you mean Deployment of apps/v1?"),
        ("v1", "Deployment", "did you mean Deployment of apps/v1?"),
    ],
)
def test_an_unknown_kind_is_a_warning(aliquot: Run, version: str, kind: str, problem: str) -> None:
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}}
    ((severity, field, said),) = found(aliquot, body, code=0)
    assert (severity, field) == ("warning", "kind")
    assert said.endswith(problem)


def test_a_file_of_our_own_is_no_unknown_kind(aliquot: Run) -> None:
    scenario = {"apiVersion": "aliquot.dev/v1alpha1", "kind": "Scenario", "metadata": {"name": "s"}}
    assert found(aliquot, scenario, code=0) == []


def test_a_pod_group_of_koordinators_is_known(aliquot: Run) -> None:
    group = {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"minMember": 2},
    }
    assert found(aliquot, group, code=0) == []


def test_a_task_that_servers_do_not_check_is_warned_of(aliquot: Run) -> None:
    one = task("a", 1)
    one["template"]["spec"]["containers"][0]["resource"] = {"limits": {GPU: 8}}
    ((severity, field, problem),) = found(aliquot, gang_job("a/j", one), code=0)
    assert severity == "warning"
    assert field == "spec.tasks[0].template.spec.containers[0].resource"
    assert problem.endswith("did you mean spec.tasks[0].template.spec.containers[0].resources?")


def test_what_a_newer_server_has_accepted_is_counted(aliquot: Run) -> None:
    newer = [
        served(pod(f"a/p-{n}", containers=[{"name": "c", "speed": n}], resizing=n))
        for n in range(3)
    ]
    newer[0]["status"] = {"anything": 1}
    newer[1]["metadata"]["managedFields"] = [{"what": "ever"}]
    newer.append({**served(quota("b", {})), "apiVersion": "scheduling.x-k8s.io/v1"})
    said = found(aliquot, node(), *newer, code=0)
    assert [each[:2] for each in said] == [
        ("warning", "spec.containers[].speed"),
        ("warning", "spec.resizing"),
        ("warning", "apiVersion"),
    ]
    assert all("accepted: 3 objects" in each[2] for each in said[:2])
    ran = aliquot("simulate", [node(), *newer])
    assert ran.code == 0
    assert ran.err.count("unknown field spec.resizing") == 1


def test_a_status_is_never_checked(aliquot: Run) -> None:
    body = {**quota("a", {}), "status": {"whatever": {"x": 1}}}
    assert found(aliquot, body, {**pod("a/p"), "status": {"fase": "x"}}, code=0) == []


def test_generated_names_are_told_apart(aliquot: Run) -> None:
    one = pod("a/p")
    one["metadata"] = {"generateName": "train-", "namespace": "a"}
    assert found(aliquot, node(), one, one, code=0) == []
    ran = aliquot("simulate", [node(), one, one], "-o", "json")
    names = [each["pod"] for each in json.loads(ran.out)["pods"]]
    assert names == ["a/train-bbbbb", "a/train-bbbbc"]


def test_fields_in_a_timeline_are_checked_with_their_lines(aliquot: Run) -> None:
    steps = timeline({"at": 5, "apply": [{**quota("a", {}), "spec": {"mim": {}}}]})
    ran = aliquot("validate", [node(), steps], "-o", "json")
    (each,) = json.loads(ran.out)["findings"]
    with open(each["file"]) as file:
        lines = file.read().splitlines()
    assert "mim" in lines[each["line"] - 1]


def test_a_job_that_counts_evictions_as_failures(aliquot: Run) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}
    spends = job("a/j")
    spends["spec"]["podFailurePolicy"] = {"rules": [rule]}
    ((severity, field, problem),) = found(aliquot, spends, code=0)
    assert (severity, field) == ("warning", "spec.podFailurePolicy")
    assert "each reclaim spends its backoffLimit" in problem
    ignored = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    spends["spec"]["podFailurePolicy"]["rules"].append(ignored)
    assert found(aliquot, spends, code=0) == []


def test_a_resource_that_no_node_has(aliquot: Run) -> None:
    asks = pod("a/p", containers=[{"name": "c", "resources": {"limits": {f"{GPU}s": 8}}}])
    where = f"spec.containers[0].resources.limits[{GPU}s]"
    hint = f"did you mean {GPU}?"
    assert found(aliquot, node(), asks, code=0) == [
        ("warning", where, f"no node has this resource; {hint}")
    ]
    assert found(aliquot, asks, code=0) == [
        ("warning", where, f"is no resource that is known; {hint}")
    ]
    bounds = quota("a", {f"{GPU}s": 1})
    assert (
        "warning",
        f"spec.min[{GPU}s]",
        f"no node has this resource; {hint}",
    ) in found(aliquot, node(), bounds, code=0)


def test_a_claim_above_the_sum_of_min(aliquot: Run) -> None:
    quotas = [quota("a", {"gpu": 4}), quota("b", {"gpu": 4})]
    large = pod("a/p", {"gpu": 9})
    ((_, field, problem),) = found(aliquot, node(gpu=16), *quotas, large, code=0)
    assert field == "spec"
    assert problem == (
        f"can never start: asks for 9 {GPU}, the sum of min is 8; "
        "it could with capacity.borrow: freeCapacity"
    )
    config = {
        "apiVersion": "config.aliquot.dev/v1alpha1",
        "kind": "Configuration",
        "capacity": {"borrow": "freeCapacity"},
    }
    ran = aliquot("validate", [node(gpu=16), *quotas, large], "--config", [config])
    assert ran.out.endswith("no errors, no warnings\n")
    assert found(aliquot, node(gpu=16), *quotas, pod("a/p", {"gpu": 8}), code=0) == []


def test_gpus_that_there_are_not(aliquot: Run) -> None:
    wants = pod("a/p")
    wants["metadata"]["annotations"] = {
        "tensor-fusion.ai/vram-request": "4Gi",
        "tensor-fusion.ai/gpu-model": "H100",
        "tensor-fusion.ai/gpupool": "big",
    }
    limit = gpu_quota("a/g", single={"maxRequests": {"vram": "2Gi"}})
    machine = node()
    machine["metadata"]["labels"] = {"nvidia.com/gpu.product": "A100"}
    said = {each[1]: each[2] for each in found(aliquot, machine, limit, wants, code=0)}
    prefix = "metadata.annotations[tensor-fusion.ai/"
    assert said[f"{prefix}gpu-model]"] == "no GPU is of the model 'H100' (there are: A100)"
    assert said[f"{prefix}gpupool]"] == "no GPU is of the pool 'big' (there are: none)"
    assert "single.max.vram.request: requested 4Gi, limit 2Gi" in said["spec"]
