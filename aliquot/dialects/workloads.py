"""Workloads: how many pods an object wants now, and what each of its pods is.

The rules are those of kube-controller-manager, of Volcano's job controller, and of the controllers
of job frameworks, by their table. The simulation and
the controllers of the embedded API server both ask here, so that their pods are the same but for
their names: the servers' are generated, those of a simulation are `<owner>-<index>`. When pods are
made and deleted is up to each of them.

A pod that is made here shares labels, annotations and spec with its template: they must be copied
before they are changed.
"""

from typing import Any

from aliquot.dialects.claims import claim_name
from aliquot.dialects.core.labels import COMPLETION_INDEX, JOB_NAMES, JOB_UID
from aliquot.dialects.core.manifest import Manifest, owner_reference
from aliquot.dialects.frameworks import gangs as job_gangs
from aliquot.dialects.frameworks.objects import JobWire
from aliquot.dialects.volcano import jobs
from aliquot.dialects.volcano.declared_gangs import stamped
from aliquot.dialects.volcano.keys import (
    GROUP_ANNOTATIONS,
    JOB,
    JOB_QUEUE,
    NOT_PREEMPTABLE,
    QUEUE,
    TASK,
    is_preemptable,
)
from aliquot.dialects.volcano.objects import GangJobWire
from aliquot.json import Body

_FROM_TEMPLATE = ("annotations", "finalizers", "labels")
"""The metadata that a pod has from its template; all else there is ignored."""
_VOLCANO_SCHEDULER = "volcano"
"""The default of spec.schedulerName of a Volcano Job."""


def templates(owner: Manifest) -> dict[str, Body]:
    """The pod templates of a workload as they are written, by task; without tasks, under ""."""
    spec = owner.body["spec"]
    if isinstance(owner.content, JobWire):
        return {task: role.template for task, role in job_gangs.job_roles(owner).items()}
    if not isinstance(owner.content, GangJobWire):
        return {"": spec["template"]}
    named = zip(jobs.tasks(owner), spec["tasks"], strict=True)
    return {task.name: written["template"] for task, written in named}


def new_pod(owner: Body, template: Body, **names: str) -> Body:
    """A pod of a Deployment, ReplicaSet or StatefulSet; `names` go into its metadata."""
    written = template.get("metadata") or {}
    metadata = {
        **{key: value for key, value in written.items() if key in _FROM_TEMPLATE and value},
        **names,
        "ownerReferences": [owner_reference(owner)],
    }
    spec = template.get("spec") or {}
    return stamped(owner, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def in_group(pod: Body, group: str) -> Body:
    """A pod with the annotation that names its workload's group, unless it names one itself."""
    written = pod["metadata"].get("annotations") or {}
    annotations = {GROUP_ANNOTATIONS[0]: group, **written}
    return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}


def replicas(owner: Body) -> int:
    """How many pods a Deployment, ReplicaSet or StatefulSet wants."""
    return _number(owner, "replicas", 1)


# StatefulSets.


def ordinals(owner: Body) -> range:
    """The ordinals of the pods that a StatefulSet wants."""
    start = (owner["spec"].get("ordinals") or {}).get("start") or 0
    return range(start, start + replicas(owner))


def starts_in_order(owner: Body, group: str) -> bool:
    """Does a StatefulSet create a pod only when all pods before it are ready?

    Not if its pods are in a group: the first one would wait for the others, and they for it.
    """
    return not group and owner["spec"].get("podManagementPolicy") != "Parallel"


def stateful_pod(owner: Body, ordinal: int, template: Body, **names: str) -> Body:
    """The pod of a StatefulSet with this ordinal: with its name, its host name and its volumes."""
    name = f"{owner['metadata']['name']}-{ordinal}"
    pod = new_pod(owner, template, **{**names, "name": name})
    spec = {**pod["spec"], "hostname": name}
    if owner["spec"].get("serviceName"):
        spec["subdomain"] = owner["spec"]["serviceName"]
    claims = {
        each["metadata"]["name"]: {"claimName": claim_name(each, name)}
        for each in owner["spec"].get("volumeClaimTemplates") or ()
    }
    if claims:
        own = [each for each in spec.get("volumes") or () if each.get("name") not in claims]
        made = [{"name": key, "persistentVolumeClaim": value} for key, value in claims.items()]
        spec["volumes"] = [*own, *made]
    labels = {
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(ordinal),
    }
    return {**_with_keys(pod, {}, labels), "spec": spec}


# Jobs of Kubernetes.


def job_wants(job: Body, succeeded: int, active: int) -> int:
    """How many pods of a Job should be active now.

    A Job without `completions` is a work queue: once a pod has succeeded, those that are active go
    on, and lost ones are not replaced.
    """
    if job["spec"].get("suspend"):
        return 0
    at_once, completions = _number(job, "parallelism", 1), _completions(job)
    if completions is not None:
        return max(min(at_once, completions - succeeded), 0)
    return active if succeeded else at_once


def job_is_complete(job: Body, succeeded: int, active: int) -> bool:
    """Have enough pods succeeded? A work queue is complete once its other pods have ended, too."""
    completions = _completions(job)
    if completions is not None:
        return succeeded >= completions
    return succeeded > 0 and not active


def job_labels(job: Body) -> dict[str, str]:
    """The labels by which a Job finds its pods, unless it says that its selector is manual."""
    metadata = job["metadata"]
    if job["spec"].get("manualSelector"):
        return {}
    labels = dict.fromkeys(JOB_NAMES, metadata.get("name") or "")
    uid = metadata.get("uid")
    return {**dict.fromkeys((JOB_UID, "controller-uid"), uid), **labels} if uid else labels


def job_pod(job: Body, index: int | None = None, **names: str) -> Body:
    """A pod of a Job; that of an Indexed Job with its completion index."""
    labels, annotations = job_labels(job), {}
    if index is not None:
        labels[COMPLETION_INDEX] = annotations[COMPLETION_INDEX] = str(index)
    pod = new_pod(job, job["spec"]["template"], **names)
    return _with_keys(pod, annotations, labels)


def completion_index(pod: Body) -> str:
    """The completion index of a pod; empty if it has none."""
    return str((pod["metadata"].get("annotations") or {}).get(COMPLETION_INDEX, ""))


def indexes(job: Body) -> int:
    """How many completion indexes an Indexed Job has, each for one pod at a time; else 0."""
    return (_completions(job) or 0) if job["spec"].get("completionMode") == "Indexed" else 0


# Jobs of Volcano.


def task_pods(job: Manifest) -> dict[str, str]:
    """The names of a Volcano Job's pods, as Volcano names them, and the task of each."""
    return {
        f"{job.name}-{task.name}-{index}": task.name
        for task in jobs.tasks(job)
        for index in range(task.replicas)
    }


def task_pod(job: Manifest, task: str, group: str, **names: str) -> Body:
    """A pod of a task: with the keys of its Job, and its class and scheduler if it names none."""
    queue, pod = jobs.queue(job), new_pod(job.body, templates(job)[task], **names)
    annotations = {GROUP_ANNOTATIONS[0]: group, QUEUE: queue, TASK: task, JOB: job.name}
    if not is_preemptable(job.metadata):
        annotations |= NOT_PREEMPTABLE
    labels = {JOB: job.name, JOB_QUEUE: queue, TASK: task}
    named, spec = jobs.spec(job).priority_class_name, dict(pod["spec"])
    if named and not spec.get("priorityClassName") and spec.get("priority") is None:
        spec["priorityClassName"] = named
    scheduler = job.body["spec"].get("schedulerName") or _VOLCANO_SCHEDULER
    spec["schedulerName"] = spec.get("schedulerName") or scheduler
    return {**_with_keys(pod, annotations, labels), "spec": spec}


# Jobs of frameworks.


def role_wants(job: Manifest, running: int) -> dict[str, int]:
    """How many pods each task of a job has that is made while so many pods run or are done.

    A later stage is made once all pods of the earlier ones run.
    """
    found = job_gangs.job_roles(job)
    if job_gangs.is_suspended(job) or not job_gangs.copies(job):
        return dict.fromkeys(found, 0)
    made, needed = dict[str, int](), 0
    for stage in sorted({role.stage for role in found.values()}):
        if running < needed:
            break
        own = {task: role.count for task, role in found.items() if role.stage == stage}
        made |= own
        needed += sum(own.values())
    return made


def role_pod(job: Manifest, task: str, **names: str) -> Body:
    """A pod of a job, with the labels by which the framework's controller marks it."""
    row, role = job_gangs.framework(job), job_gangs.job_roles(job)[task]
    labels = {row.job_label: job.name, row.role_label: role.name}
    if row.copies is not None:
        labels[row.copies[1]] = task.partition("/")[0]
        labels[row.role_label] = "0" if role.name == "leader" else "1"
    return _with_keys(new_pod(job.body, role.template, **names), {}, labels)


def _with_keys(pod: Body, annotations: dict[str, str], labels: dict[str, str]) -> Body:
    """A pod with more annotations and labels; they win over those that it has."""
    metadata: Body = dict(pod["metadata"])
    for word, ours in (("annotations", annotations), ("labels", labels)):
        if ours:
            metadata[word] = {**(metadata.get(word) or {}), **ours}
    return {**pod, "metadata": metadata}


def _completions(job: Body) -> int | None:
    """The completions of a Job: 1 if neither they nor its parallelism are given."""
    spec: Body = job["spec"]
    written: int | None = spec.get("completions")
    return 1 if written is None and spec.get("parallelism") is None else written


def _number(owner: Body, field: str, default: int) -> int:
    written: Any = owner["spec"].get(field)
    return default if written is None else int(written)
