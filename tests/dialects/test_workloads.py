"""The pods of workloads, by the rules of kube-controller-manager and of Volcano's controller."""

import pytest

from aliquot.dialects.workloads import (
    completion_index,
    in_group,
    indexes,
    job_is_complete,
    job_labels,
    job_pod,
    job_wants,
    new_pod,
    replicas,
    task_pod,
    task_pods,
)
from aliquot.json import Body
from tests.build.manifests import GROUP_NAME, gang_job, job, pod, task, workload
from tests.dialects.manifests import read

INDEX = "batch.kubernetes.io/job-completion-index"


def with_uid(body: Body) -> Body:
    return {**body, "metadata": {**body["metadata"], "uid": "u-1"}}


def test_a_pod_has_labels_annotations_finalizers_and_spec_of_its_template() -> None:
    owner = with_uid(workload("ReplicaSet", "a/web", {"cpu": 1}))
    template = owner["spec"]["template"]
    kept = {"labels": {"app": "x"}, "annotations": {"b": "c"}, "finalizers": ["d/e"]}
    template["metadata"] = {
        "name": "other",
        "namespace": "other",
        "creationTimestamp": "2020-01-01T00:00:00Z",
        **kept,
    }
    made = new_pod(owner, template, generateName="web-")
    reference: Body = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-1"}
    reference |= {"controller": True, "blockOwnerDeletion": True}
    assert made["metadata"] == {**kept, "generateName": "web-", "ownerReferences": [reference]}
    assert made["spec"] == pod("a/web", {"cpu": 1})["spec"]
    assert (made["apiVersion"], made["kind"]) == ("v1", "Pod")


def test_an_owner_of_a_file_has_no_uid() -> None:
    owner = workload("ReplicaSet", "a/web", {})
    (reference,) = new_pod(owner, owner["spec"]["template"])["metadata"]["ownerReferences"]
    assert "uid" not in reference


def test_replicas() -> None:
    assert replicas(workload("ReplicaSet", "a/web", {})) == 1
    assert replicas(workload("ReplicaSet", "a/web", {}, replicas=0)) == 0
    assert replicas(workload("ReplicaSet", "a/web", {}, replicas=3)) == 3


def test_a_pod_that_names_a_group_stays_in_it() -> None:
    assert in_group(pod("a/p"), "g")["metadata"]["annotations"] == {GROUP_NAME: "g"}
    own = pod("a/p", annotations={GROUP_NAME: "own"})
    assert in_group(own, "g")["metadata"]["annotations"] == {GROUP_NAME: "own"}


@pytest.mark.parametrize(
    ("spec", "succeeded", "active", "wanted", "complete"),
    [
        ({}, 0, 0, 1, False),
        ({}, 1, 0, 0, True),
        ({"completions": 5, "parallelism": 2}, 0, 0, 2, False),
        ({"completions": 5, "parallelism": 2}, 4, 1, 1, False),
        ({"completions": 5, "parallelism": 2}, 5, 0, 0, True),
        ({"completions": 2, "parallelism": 1, "suspend": True}, 0, 1, 0, False),
        ({"completions": 2}, 0, 0, 1, False),
        # A work queue: pods go on once one has succeeded, and lost ones are not replaced.
        ({"parallelism": 3}, 0, 1, 3, False),
        ({"parallelism": 3}, 1, 2, 2, False),
        ({"parallelism": 3}, 1, 1, 1, False),
        ({"parallelism": 3}, 2, 0, 0, True),
    ],
)
def test_how_many_pods_a_job_wants(
    spec: Body, succeeded: int, active: int, wanted: int, complete: bool
) -> None:
    body = job("a/j", **spec)
    assert job_wants(body, succeeded, active) == wanted
    assert job_is_complete(body, succeeded, active) == complete


def test_a_pod_of_a_job_is_labelled_with_the_job() -> None:
    names = {"batch.kubernetes.io/job-name": "j", "job-name": "j"}
    uids = {"batch.kubernetes.io/controller-uid": "u-1", "controller-uid": "u-1"}
    assert job_labels(job("a/j")) == names
    assert job_labels(with_uid(job("a/j"))) == names | uids
    assert job_labels(job("a/j", manualSelector=True)) == {}
    assert job_pod(job("a/j"))["metadata"]["labels"] == names


def test_a_pod_of_an_indexed_job_has_its_completion_index() -> None:
    body = job("a/j", completionMode="Indexed", completions=4, parallelism=4)
    made = job_pod(body, 2)
    assert (made["metadata"]["annotations"], completion_index(made)) == ({INDEX: "2"}, "2")
    assert made["metadata"]["labels"][INDEX] == "2"
    assert indexes(body) == 4
    assert indexes(job("a/j", completions=4)) == 0
    assert completion_index(job_pod(job("a/j"))) == ""


def test_the_names_of_a_volcano_jobs_pods() -> None:
    body = gang_job("a/j", task("master", 1), task(None, 2))
    assert task_pods(read(body)) == {
        "j-master-0": "master",
        "j-default1-0": "default1",
        "j-default1-1": "default1",
    }


@pytest.mark.parametrize(
    ("of_job", "of_task", "made"),
    [
        ({}, {}, {"schedulerName": "volcano"}),
        ({"schedulerName": "s"}, {}, {"schedulerName": "s"}),
        ({"schedulerName": "s"}, {"schedulerName": "t"}, {"schedulerName": "t"}),
        ({"priorityClassName": "p"}, {}, {"priorityClassName": "p"}),
        ({"priorityClassName": "p"}, {"priorityClassName": "q"}, {"priorityClassName": "q"}),
        ({"priorityClassName": "p"}, {"priority": 0}, {"priorityClassName": None, "priority": 0}),
    ],
)
def test_class_and_scheduler_of_a_volcano_jobs_pods(
    of_job: Body, of_task: Body, made: Body
) -> None:
    one = task("x", 1)
    one["template"]["spec"].update(of_task)
    spec = task_pod(read(gang_job("a/j", one, **of_job)), "x", "j")["spec"]
    assert {key: spec.get(key) for key in made} == made
