"""Gangs of job frameworks: what the table derives of each kind, and whose pods are whose."""

from typing import Any

import pytest

from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import Manifest, read
from aliquot.dialects.core.objects import Metadata, OwnerReference
from aliquot.dialects.core.pod_templates import template_views
from aliquot.dialects.frameworks import gangs
from aliquot.dialects.frameworks.members import job_ref
from aliquot.errors import InputError
from aliquot.json import Body

TEMPLATE: Body = {"spec": {"containers": [{"name": "main", "image": "i"}]}}


def job(api_version: str, kind: str, spec: Body, **metadata: Any) -> Manifest:
    about = {"name": "j", "namespace": "team", **metadata}
    body = {"apiVersion": api_version, "kind": kind, "metadata": about, "spec": spec}
    found = read(Document("jobs.yaml", body))
    assert found is not None
    return found


def replicas(**counts: int) -> Body:
    return {role: {"replicas": n, "template": TEMPLATE} for role, n in counts.items()}


def kubeflow(kind: str, specs: str, roles: Body, version: str = "v1", **spec: Any) -> Manifest:
    return job(f"kubeflow.org/{version}", kind, {specs: roles, **spec})


def pytorch(roles: Body, **spec: Any) -> Manifest:
    return kubeflow("PyTorchJob", "pytorchReplicaSpecs", roles, **spec)


def ray(
    kind: str = "RayCluster", at: str = "", autoscaling: bool = False, **group: Any
) -> Manifest:
    workers = {"groupName": "w", "template": TEMPLATE, **group}
    spec: Body = {"headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": [workers]}
    spec["enableInTreeAutoscaling"] = autoscaling
    return job("ray.io/v1", kind, {at: spec} if at else spec)


def job_set(*jobs: Body, **spec: Any) -> Manifest:
    return job("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": list(jobs), **spec})


def replicated(name: str, copies: int = 1, pods: int = 1, **more: Any) -> Body:
    template = {"spec": {"parallelism": pods, "completions": pods, "template": TEMPLATE}}
    return {"name": name, "replicas": copies, "template": template, **more}


def leader_workers(copies: int, size: int, **spec: Any) -> Manifest:
    whole = {"size": size, "workerTemplate": TEMPLATE}
    spec = {"replicas": copies, "leaderWorkerTemplate": whole, **spec}
    return job("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec)


POLICY = {"runPolicy": {"schedulingPolicy": {"minAvailable": 3}}}


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (pytorch(replicas(Master=1, Worker=3)), {"pytorchjob-j": 4}),
        (pytorch(replicas(Master=1, Worker=3), **POLICY), {"pytorchjob-j": 3}),
        (pytorch(replicas(Worker=4), elasticPolicy={"minReplicas": 2}), {"pytorchjob-j": 2}),
        (
            pytorch(replicas(Worker=4), elasticPolicy={"minReplicas": 2}, **POLICY),
            {"pytorchjob-j": 3},
        ),
        (pytorch(replicas(Master=1)), {}),
        (pytorch(replicas(Worker=2), runPolicy={"suspend": True}), {}),
        (kubeflow("TFJob", "tfReplicaSpecs", replicas(Chief=1, PS=2, Worker=3)), {"tfjob-j": 6}),
        (
            kubeflow("XGBoostJob", "xgbReplicaSpecs", replicas(Master=1, Worker=2)),
            {"xgboostjob-j": 3},
        ),
        (kubeflow("PaddleJob", "paddleReplicaSpecs", replicas(Worker=2)), {"paddlejob-j": 2}),
        (kubeflow("MPIJob", "mpiReplicaSpecs", replicas(Launcher=1, Worker=2)), {"mpijob-j": 3}),
        (
            kubeflow(
                *("MPIJob", "mpiReplicaSpecs", replicas(Launcher=1, Worker=2), "v2beta1"),
                launcherCreationPolicy="WaitForWorkersReady",
            ),
            {"mpijob-j": 2},
        ),
        (ray(replicas=3, minReplicas=2), {"raycluster-j": 3}),
        (ray(replicas=3), {"raycluster-j": 4}),
        (ray(replicas=3, minReplicas=0, autoscaling=True), {}),
        (ray(replicas=1, numOfHosts=4), {"raycluster-j": 5}),
        (ray(replicas=9, minReplicas=1, maxReplicas=2), {"raycluster-j": 2}),
        (ray("RayJob", "rayClusterSpec", replicas=2, minReplicas=2), {"rayjob-j": 3}),
        (ray("RayService", "rayClusterConfig", replicas=1, minReplicas=1), {"rayservice-j": 2}),
        (job_set(replicated("a", 2, 3), replicated("b")), {"jobset-j": 7}),
        (
            job_set(
                replicated("a", 1, 2), replicated("b", 1, 3),
                startupPolicy={"startupPolicyOrder": "InOrder"},
            ),
            {"jobset-j": 2, "jobset-j-stage1": 3},
        ),
        (
            job_set(
                replicated("init"),
                replicated("node", 1, 4, dependsOn=[{"name": "init", "status": "Complete"}]),
            ),
            {"jobset-j-stage1": 4},
        ),
        (leader_workers(2, 4), {"leaderworkerset-j-0": 4, "leaderworkerset-j-1": 4}),
        (leader_workers(1, 4, startupPolicy="LeaderReady"), {"leaderworkerset-j-0-stage1": 3}),
        (
            job(
                "trainer.kubeflow.org/v1alpha1", "TrainJob",
                {"runtimeRef": {"name": "torch"}, "trainer": {"numNodes": 3}},
            ),
            {"trainjob-j": 3},
        ),
    ],
)  # fmt: skip
def test_all_pods_that_are_made_at_once_start_together(
    manifest: Manifest, expected: dict[str, int]
) -> None:
    found = gangs.gangs(manifest)
    assert {each.name: each.min_member for each in found} == expected
    for group in gangs.pod_groups(manifest):
        assert group.metadata.owner_references is not None
        (owner,) = group.metadata.owner_references
        assert (owner.kind, owner.name, owner.controller) == (manifest.kind, "j", True)
        assert group.namespace == "team"


def plain_job(annotations: Body, **spec: Any) -> Manifest:
    return job("batch/v1", "Job", {"template": TEMPLATE, **spec}, annotations=annotations)


@pytest.mark.parametrize(
    ("asks", "spec", "expected"),
    [
        ("true", {"parallelism": 4}, [4]),
        ("true", {"parallelism": 4, "completions": 3, "completionMode": "Indexed"}, [3]),
        ("true", {"parallelism": 1}, []),
        ("false", {"parallelism": 4}, []),
        ("true", {"parallelism": 4, "suspend": True}, []),
    ],
)
def test_a_job_of_kubernetes_asks_for_a_gang(asks: str, spec: Body, expected: list[int]) -> None:
    found = gangs.gangs(plain_job({"aliquot.dev/gang": asks}, **spec))
    assert [each.min_member for each in found] == expected
    assert [each.name for each in found] == ["job-j"] * len(expected)


def test_a_group_has_the_queue_and_the_class_of_its_job() -> None:
    policy = {"queue": "research", "priorityClass": "high", "minAvailable": 2}
    (group,) = gangs.pod_groups(pytorch(replicas(Worker=2), runPolicy={"schedulingPolicy": policy}))
    spec = group.body["spec"]
    assert (spec["queue"], spec["priorityClassName"], spec["minMember"]) == ("research", "high", 2)


def test_a_master_is_in_the_core_of_an_elastic_job() -> None:
    roles = replicas(Master=1, Worker=4)
    (gang,) = gangs.gangs(pytorch(roles, elasticPolicy={"minReplicas": 3}))
    assert (gang.min_member, gang.min_tasks) == (3, {"master": 1})


@pytest.mark.parametrize(
    ("manifest", "field", "problem"),
    [
        (
            pytorch({"Worker": {"replicas": -1, "template": TEMPLATE}}),
            "spec.pytorchReplicaSpecs.Worker.replicas",
            "-1 is no whole number",
        ),
        (
            pytorch({"Worker": {"replicas": 1}}),
            "spec.pytorchReplicaSpecs.Worker.template",
            "missing",
        ),
        (pytorch([]), "spec.pytorchReplicaSpecs", "must be an object"),  # type: ignore[arg-type]
        (leader_workers(1, 0), "spec.leaderWorkerTemplate.size", "0 is no whole number"),
        (ray(replicas="two"), "spec.workerGroupSpecs[0].replicas", "'two' is no whole number"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_field(
    manifest: Manifest, field: str, problem: str
) -> None:
    with pytest.raises(InputError) as refused:
        gangs.check(manifest)
    assert refused.value.field == field
    assert problem in refused.value.problem


def test_templates_are_those_of_all_roles() -> None:
    views = template_views(pytorch(replicas(Master=1, Worker=2)))
    assert [each.spec_field for each in views] == [
        "spec.pytorchReplicaSpecs.Master.template.spec",
        "spec.pytorchReplicaSpecs.Worker.template.spec",
    ]


def metadata(owner: str = "", **labels: str) -> Metadata:
    owners = [OwnerReference(kind=owner, name="any", controller=True)] if owner else None
    return Metadata(name="p", labels=labels, owner_references=owners)


KUBEFLOW = "training.kubeflow.org/"
SET, LWS = "jobset.sigs.k8s.io/", "leaderworkerset.sigs.k8s.io/"


@pytest.mark.parametrize(
    ("of", "kinds", "role", "index"),
    [
        (
            metadata("TFJob", **{f"{KUBEFLOW}job-name": "j", f"{KUBEFLOW}replica-type": "ps"}),
            ("TFJob",), "ps", 0,
        ),
        (  # the launcher of an MPIJob of version v2beta1 is the pod of a Job
            metadata(
                "Job",
                **{
                    f"{KUBEFLOW}job-name": "j",
                    f"{KUBEFLOW}job-role": "launcher",
                    f"{KUBEFLOW}operator-name": "mpi-operator",
                    "batch.kubernetes.io/job-name": "j-launcher",
                },
            ),
            ("MPIJob",), "launcher", 0,
        ),
        (
            metadata("RayCluster", **{"ray.io/cluster": "j", "ray.io/group": "headgroup"}),
            ("RayCluster",), "headgroup", 0,
        ),
        (
            metadata(
                "Job",
                **{
                    f"{SET}jobset-name": "j",
                    f"{SET}replicatedjob-name": "node",
                    "batch.kubernetes.io/job-name": "j-node-0",
                },
            ),
            ("JobSet", "TrainJob"), "node", 0,
        ),
        (
            metadata(
                "StatefulSet",
                **{f"{LWS}name": "j", f"{LWS}group-index": "2", f"{LWS}worker-index": "0"},
            ),
            ("LeaderWorkerSet",), "leader", 2,
        ),
        (metadata("Job", **{"batch.kubernetes.io/job-name": "j"}), ("Job",), "", 0),
    ],
)  # fmt: skip
def test_a_pod_names_its_job_as_the_controller_writes_it(
    of: Metadata, kinds: tuple[str, ...], role: str, index: int
) -> None:
    found = job_ref(of)
    assert found is not None
    assert (found.kinds, found.name, found.role, found.index) == (kinds, "j", role, index)


def test_a_pod_beside_a_ray_cluster_is_not_of_its_gang() -> None:
    """The submitter of a RayJob names the cluster, and no group of it."""
    assert job_ref(metadata("Job", **{"ray.io/cluster": "j"})) is None


def test_pods_that_are_made_later_are_of_another_gang() -> None:
    manifest = leader_workers(2, 3, startupPolicy="LeaderReady")
    assert gangs.gang_of(manifest, "leader", 1) is None
    assert gangs.gang_of(manifest, "worker", 1) == "leaderworkerset-j-1-stage1"
    assert gangs.gang_of(manifest, "worker", 2) is None
