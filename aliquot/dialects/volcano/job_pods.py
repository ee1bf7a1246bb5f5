"""What Volcano's controllers write into the pods that they make, or that are in a group of theirs.

A simulation and a cluster of our own both play these controllers: their pods say the same. What
they are called, and when there are any, is for each to decide.
"""

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.volcano import jobs
from aliquot.dialects.volcano.keys import GROUP_ANNOTATIONS, JOB, JOB_QUEUE, QUEUE, TASK
from aliquot.dialects.volcano.objects import GangJobWire
from aliquot.json import Body


def templates(owner: Manifest) -> dict[str, Body]:
    """The templates of an owner of pods, as they are written, by task.

    One without tasks has a single one without a name.
    """
    spec = owner.body["spec"]
    if not isinstance(owner.content, GangJobWire):
        return {"": spec["template"]}
    named = zip(jobs.tasks(owner), spec["tasks"], strict=True)
    return {task.name: written["template"] for task, written in named}


def in_group(pod: Body, group: str) -> Body:
    """A pod whose owner asked for a group: it names it, unless it names one itself."""
    written = pod["metadata"].get("annotations") or {}
    annotations = {GROUP_ANNOTATIONS[0]: group, **written}
    return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}


def in_job(pod: Body, job: Manifest, task: str, group: str) -> Body:
    """A pod of a task of a Job: it says whose it is, and is as important as the Job."""
    queue, metadata = jobs.queue(job), dict(pod["metadata"])
    annotations = {GROUP_ANNOTATIONS[0]: group, QUEUE: queue, TASK: task, JOB: job.name}
    labels = {JOB: job.name, JOB_QUEUE: queue, TASK: task}
    for word, ours in (("annotations", annotations), ("labels", labels)):
        metadata[word] = {**(metadata.get(word) or {}), **ours}
    named, spec = jobs.spec(job).priority_class_name, pod["spec"]
    if named and not spec.get("priorityClassName") and spec.get("priority") is None:
        spec = {**spec, "priorityClassName": named}
    return {**pod, "metadata": metadata, "spec": spec}
