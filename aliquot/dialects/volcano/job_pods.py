"""What Volcano's controllers write into pods of their Jobs and of the PodGroups they make.

The simulation and the embedded API server both play these controllers and share this, so that their
pods carry the same keys. When pods are made, and under which names, is up to each of them.
"""

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.volcano import jobs
from aliquot.dialects.volcano.keys import GROUP_ANNOTATIONS, JOB, JOB_QUEUE, QUEUE, TASK
from aliquot.dialects.volcano.objects import GangJobWire
from aliquot.json import Body


def templates(owner: Manifest) -> dict[str, Body]:
    """The pod templates of a workload as they are written, by task; without tasks, under ""."""
    spec = owner.body["spec"]
    if not isinstance(owner.content, GangJobWire):
        return {"": spec["template"]}
    named = zip(jobs.tasks(owner), spec["tasks"], strict=True)
    return {task.name: written["template"] for task, written in named}


def in_group(pod: Body, group: str) -> Body:
    """A pod with the annotation that names its workload's group, unless it names one itself."""
    written = pod["metadata"].get("annotations") or {}
    annotations = {GROUP_ANNOTATIONS[0]: group, **written}
    return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}


def in_job(pod: Body, job: Manifest, task: str, group: str) -> Body:
    """A pod of a task with the keys of its Job, and the Job's priority class if it has none."""
    queue, metadata = jobs.queue(job), dict(pod["metadata"])
    annotations = {GROUP_ANNOTATIONS[0]: group, QUEUE: queue, TASK: task, JOB: job.name}
    labels = {JOB: job.name, JOB_QUEUE: queue, TASK: task}
    for word, ours in (("annotations", annotations), ("labels", labels)):
        metadata[word] = {**(metadata.get(word) or {}), **ours}
    named, spec = jobs.spec(job).priority_class_name, pod["spec"]
    if named and not spec.get("priorityClassName") and spec.get("priority") is None:
        spec = {**spec, "priorityClassName": named}
    return {**pod, "metadata": metadata, "spec": spec}
