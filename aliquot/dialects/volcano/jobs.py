"""Volcano Jobs: tasks, each a number of identical pods; all pods of a Job are one gang."""

from dataclasses import dataclass

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import MOST_PODS
from aliquot.dialects.volcano import job_policies
from aliquot.dialects.volcano.objects import GangJobSpec, GangJobWire, TaskWire
from aliquot.dialects.volcano.queues import DEFAULT


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a Job: its pods, and how many of them the gang needs to start."""

    name: str
    replicas: int
    min_available: int


def spec(manifest: Manifest) -> GangJobSpec:
    """The spec of a Job; an empty one if it has none."""
    content = manifest.content
    assert isinstance(content, GangJobWire)
    return content.spec or GangJobSpec()


def tasks(manifest: Manifest) -> list[Task]:
    """The tasks of a Job, in order; one without a name is named by its number, as in Volcano."""
    written = spec(manifest).tasks
    if not written:
        manifest.refuse("spec.tasks", "must hold at least one task")
    found = [_task(number, task, manifest) for number, task in enumerate(written or ())]
    names = [task.name for task in found]
    for number, name in enumerate(names):
        if name in names[:number]:
            manifest.refuse(f"spec.tasks[{number}].name", f"{name!r} stands here already")
    total = sum(task.replicas for task in found)
    if total > MOST_PODS:
        manifest.refuse("spec.tasks", f"{total} pods are more than {MOST_PODS}")
    return found


def min_available(manifest: Manifest) -> int:
    """How many pods must start together: the Job's minAvailable, else the sum of its tasks'."""
    found = tasks(manifest)
    written, total = spec(manifest).min_available, sum(task.replicas for task in found)
    if written is not None and not 0 <= written <= total:
        problem = f"{written} is not between 0 and the {total} pods of its tasks"
        manifest.refuse("spec.minAvailable", problem)
    return written or sum(task.min_available for task in found)


def check_policies(manifest: Manifest) -> None:
    """Refuse policies of the Job, or of a task, that Volcano refuses."""
    job_policies.check(spec(manifest).policies, manifest, "spec.policies")
    for number, task in enumerate(spec(manifest).tasks or ()):
        job_policies.check(task.policies, manifest, f"spec.tasks[{number}].policies")


def queue(manifest: Manifest) -> str:
    """The queue of all its pods."""
    return spec(manifest).queue or DEFAULT


def _task(number: int, written: TaskWire, manifest: Manifest) -> Task:
    at = f"spec.tasks[{number}]"
    if written.template is None:
        manifest.refuse(f"{at}.template", "is missing")
    replicas = 1 if written.replicas is None else written.replicas
    if not 0 <= replicas <= MOST_PODS:
        manifest.refuse(f"{at}.replicas", f"{replicas} is not between 0 and {MOST_PODS}")
        replicas = 0
    min_available = replicas if written.min_available is None else written.min_available
    if not 0 <= min_available <= replicas:
        problem = f"{min_available} is not between 0 and its {replicas} replicas"
        manifest.refuse(f"{at}.minAvailable", problem)
    return Task(written.name or f"default{number}", replicas, min_available)
