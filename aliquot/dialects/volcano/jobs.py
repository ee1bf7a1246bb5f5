"""Volcano's Jobs: tasks, each of so many pods alike, that make one gang."""

from dataclasses import dataclass

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.volcano.objects import GangJobSpec, GangJobWire, TaskWire
from aliquot.dialects.volcano.queues import DEFAULT

_MOST_PODS = 100_000


@dataclass(frozen=True, slots=True)
class Task:
    """So many pods alike, of which so many are needed."""

    name: str
    replicas: int
    fewest: int


def spec(manifest: Manifest) -> GangJobSpec:
    """What is written about it; an empty one, if nothing is."""
    content = manifest.content
    assert isinstance(content, GangJobWire)
    return content.spec or GangJobSpec()


def tasks(manifest: Manifest) -> list[Task]:
    """Its tasks, in order; without a name, one is called by its number."""
    written = spec(manifest).tasks
    if not written:
        raise manifest.error("spec.tasks", "must hold at least one task")
    found = [_task(number, task, manifest) for number, task in enumerate(written)]
    names = [task.name for task in found]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise manifest.error(f"spec.tasks[{number}].name", f"{name!r} stands here already")
    total = sum(task.replicas for task in found)
    if total > _MOST_PODS:
        raise manifest.error("spec.tasks", f"{total} pods are more than {_MOST_PODS}")
    return found


def fewest(manifest: Manifest) -> int:
    """How many pods must be able to start: by its own word, else what its tasks need."""
    found = tasks(manifest)
    said, total = spec(manifest).min_available, sum(task.replicas for task in found)
    if said is not None and not 0 <= said <= total:
        problem = f"{said} is not between 0 and the {total} pods of its tasks"
        raise manifest.error("spec.minAvailable", problem)
    return said or sum(task.fewest for task in found)


def queue(manifest: Manifest) -> str:
    """The queue of all its pods."""
    return spec(manifest).queue or DEFAULT


def _task(number: int, written: TaskWire, manifest: Manifest) -> Task:
    at = f"spec.tasks[{number}]"
    if written.template is None:
        raise manifest.error(f"{at}.template", "is missing")
    replicas = 1 if written.replicas is None else written.replicas
    if not 0 <= replicas <= _MOST_PODS:
        raise manifest.error(f"{at}.replicas", f"{replicas} is not between 0 and {_MOST_PODS}")
    few = replicas if written.min_available is None else written.min_available
    if not 0 <= few <= replicas:
        problem = f"{few} is not between 0 and its {replicas} replicas"
        raise manifest.error(f"{at}.minAvailable", problem)
    return Task(written.name or f"default{number}", replicas, few)
