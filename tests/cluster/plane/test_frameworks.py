"""Jobs of frameworks on a cluster: their pods, as their controllers make them, start together.

The kinds are defined here, with open schemas; what plays their controllers is the story itself.
"""

from functools import partial

import pytest

from aliquot.dialects.frameworks.table import BY_KIND
from aliquot.json import Body
from tests.build.manifests import limited_pod, ready_node, workload
from tests.cluster.api.polling import eventually
from tests.cluster.conftest import established
from tests.cluster.plane.cluster import Cluster

GROUP = "PodGroup.scheduling.volcano.sh"
TEMPLATE: Body = {"spec": {"containers": [{"name": "main", "image": "i"}]}}
KUBEFLOW, SET = "training.kubeflow.org/", "jobset.sigs.k8s.io/"


def definition(kind: str) -> Body:
    """A definition of a framework's kind that takes any fields."""
    row = BY_KIND[kind]
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": row.versions[0], "served": True, "storage": True}
    spec = {
        "group": row.group,
        "names": {"kind": kind, "plural": row.plural, "singular": kind.lower()},
        "scope": "Namespaced",
        "versions": [{**version, "schema": {"openAPIV3Schema": anything}}],
    }
    approved = "https://github.com/kubernetes-sigs/jobset"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{row.plural}.{row.group}",
            "annotations": {"api-approved.kubernetes.io": approved},
        },
        "spec": spec,
    }


@pytest.fixture
def frameworks(cluster: Cluster) -> Cluster:
    """A cluster that knows PyTorchJobs and JobSets."""
    for kind in ("PyTorchJob", "JobSet"):
        where = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        body = definition(kind)
        assert cluster.wire.post(where, body).code in (201, 409)
        eventually(partial(established, cluster.wire, body))
    return cluster


def job(kind: str, name: str, spec: Body) -> Body:
    row = BY_KIND[kind]
    version = f"{row.group}/{row.versions[0]}"
    about = {"name": name, "namespace": "team"}
    return {"apiVersion": version, "kind": kind, "metadata": about, "spec": spec}


def owned(pod: Body, owner: Body) -> Body:
    """A pod that names the object that has made it."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    return {**pod, "metadata": {**pod["metadata"], "ownerReferences": [reference]}}


def labelled(pod: Body, labels: Body) -> Body:
    return {**pod, "metadata": {**pod["metadata"], "labels": labels}}


def test_a_pytorchjob_starts_together(frameworks: Cluster) -> None:
    cluster = frameworks
    cluster.nodes(1, gpu=3)
    roles = {"Master": 1, "Worker": 3}
    specs = {role: {"replicas": n, "template": TEMPLATE} for role, n in roles.items()}
    cluster.apply(job("PyTorchJob", "train", {"pytorchReplicaSpecs": specs}))
    made = {**cluster.get("PyTorchJob", "team/train")}
    made |= {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}
    names = ["train-master-0", *(f"train-worker-{index}" for index in range(3))]
    with cluster.scheduler():
        for name in names:
            role = name.split("-")[1]
            marks = {f"{KUBEFLOW}job-name": "train", f"{KUBEFLOW}replica-type": role}
            cluster.apply(owned(labelled(limited_pod(f"team/{name}", 1), marks), made))
        cluster.pending("team/train-worker-2", "Unschedulable", "room for 3 of 4 pods")
        cluster.waiting(*(f"team/{name}" for name in names))
        wanted = {"minMember": 4, "minTaskMember": {"master": 1, "worker": 3}}
        cluster.shows(GROUP, "team/pytorchjob-train", {"spec": wanted})
        (owner,) = cluster.get(GROUP, "team/pytorchjob-train")["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("PyTorchJob", made["metadata"]["uid"])
        cluster.apply(ready_node("node-2", gpu=1))
        cluster.running(*(f"team/{name}" for name in names))
        cluster.shows(GROUP, "team/pytorchjob-train", {"status": {"phase": "Running"}})


def test_the_pods_of_a_jobset_start_together_and_later_ones_apart(frameworks: Cluster) -> None:
    """The driver comes first; the workers, which are made once it runs, are a gang of their own."""
    cluster = frameworks
    cluster.nodes(1, gpu=2)
    template = {"spec": {"parallelism": 2, "completions": 2, "template": TEMPLATE}}
    jobs = [
        {"name": "driver", "replicas": 1, "template": {"spec": {"template": TEMPLATE}}},
        {"name": "workers", "replicas": 1, "template": template},
    ]
    order = {"startupPolicyOrder": "InOrder"}
    cluster.apply(job("JobSet", "set", {"startupPolicy": order, "replicatedJobs": jobs}))

    def member(name: str, of: str) -> Body:
        marks = {f"{SET}jobset-name": "set", f"{SET}replicatedjob-name": of}
        return labelled(limited_pod(f"team/{name}", 1), marks)

    with cluster.scheduler():
        cluster.apply(member("driver", "driver"))
        cluster.running("team/driver")
        cluster.apply(member("worker-0", "workers"))
        cluster.pending("team/worker-0", "GangIncomplete", "2 pods start together")
        cluster.apply(member("worker-1", "workers"))
        cluster.pending("team/worker-1", "Unschedulable", "room for 1 of 2 pods")
        cluster.apply(ready_node("node-2", gpu=1))
        cluster.running("team/worker-0", "team/worker-1")


def test_a_gang_that_grows_with_its_job_is_written_anew(frameworks: Cluster) -> None:
    cluster = frameworks
    specs = {"Worker": {"replicas": 2, "template": TEMPLATE}}
    cluster.apply(job("PyTorchJob", "grows", {"pytorchReplicaSpecs": specs}))
    with cluster.scheduler():
        cluster.shows(GROUP, "team/pytorchjob-grows", {"spec": {"minMember": 2}})
        specs["Worker"]["replicas"] = 5
        cluster.apply(job("PyTorchJob", "grows", {"pytorchReplicaSpecs": specs}))
        cluster.shows(GROUP, "team/pytorchjob-grows", {"spec": {"minMember": 5}})


def test_a_job_of_kubernetes_that_asks_starts_together(cluster: Cluster) -> None:
    """A controller makes the pods; on the real server, where none runs, the story does."""
    cluster.nodes(1, gpu=2)
    one = workload("Job", "team/j", {"gpu": 1}, parallelism=3, completions=3)
    one["metadata"]["annotations"] = {"aliquot.dev/gang": "true"}
    spec = {**one["spec"]["template"]["spec"], "restartPolicy": "Never"}
    one["spec"]["template"]["spec"] = {**spec, "schedulerName": "aliquot"}
    cluster.apply(one)
    made = {**cluster.get("Job.batch", "team/j"), "apiVersion": "batch/v1", "kind": "Job"}
    with cluster.scheduler():
        cluster.shows(GROUP, "team/job-j", {"spec": {"minMember": 3}})
        marks = {"batch.kubernetes.io/job-name": "j"}
        for index in range(3) if cluster.server.real else ():
            pod = limited_pod(f"team/j-{index}", 1, restartPolicy="Never")
            cluster.apply(owned(labelled(pod, marks), made))

        def told() -> object:
            """The three pods, unless all say that they wait for each other."""
            found = [each.get("status", {}).get("conditions") for each in cluster.all("Pod")]
            words = [str(each) for each in found]
            together = [each for each in words if "room for 2 of 3 pods" in each]
            return None if len(together) == len(words) == 3 else words or "no pods"

        cluster.until(told)
        assert not any(each["spec"].get("nodeName") for each in cluster.all("Pod"))
        cluster.apply(ready_node("node-2", gpu=1))
        cluster.running(*(f"team/{each['metadata']['name']}" for each in cluster.all("Pod")))
