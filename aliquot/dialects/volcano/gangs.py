"""PodGroups, of Volcano and of the scheduler plugins: pods that start together or not at all."""

from aliquot.dialects.core import amounts
from aliquot.dialects.core.manifest import VOLCANO_GROUP, Manifest
from aliquot.dialects.core.objects import INT32_MAX
from aliquot.dialects.volcano.declared_gangs import how
from aliquot.dialects.volcano.keys import is_preemptable, queue_named
from aliquot.dialects.volcano.objects import PodGroupSpec, PodGroupWire
from aliquot.engine import Gang

KIND = "PodGroup"


def gang(
    manifest: Manifest, queue: str | None = None, priority: int | None = None, created: int = 0
) -> Gang:
    """A PodGroup as the engine's gang; `queue` is the gang's queue if the group names none.

    minTaskMember does not count where its sum is above minMember, as in Volcano: otherwise the gang
    could never start with minMember pods. A minMember of 0, which Volcano takes, is 1: each pod may
    start by itself.
    """
    group = spec(manifest)
    tasks = tuple(sorted((name, low) for name, low in _min_tasks(manifest).items() if low))
    fewest = 0 if manifest.group == VOLCANO_GROUP else 1
    min_member = _at_least(group.min_member, fewest, manifest, "spec.minMember") or 1
    min_resources = amounts.read(group.min_resources, manifest, "spec.minResources")
    together, keeps_room = how(manifest.metadata.annotations or {}, manifest)
    return Gang(
        name=gang_name(manifest),
        min_member=min_member,
        min_tasks=tasks if sum(low for _, low in tasks) <= min_member else (),
        min_resources=tuple(sorted(min_resources.items())),
        quota=queue_of(manifest)[0] or queue,
        priority=priority,
        preemptible=is_preemptable(manifest.metadata),
        created=created,
        together=tuple(each for each in together if each != gang_name(manifest)),
        keeps_room=keeps_room,
    )


def spec(manifest: Manifest) -> PodGroupSpec:
    """The spec of a PodGroup; an empty one if it has none."""
    read = manifest.content
    assert isinstance(read, PodGroupWire)
    return read.spec or PodGroupSpec()


def gang_name(manifest: Manifest) -> str:
    """The engine's name of a gang: `namespace/name`."""
    return f"{manifest.namespace}/{manifest.name}"


def queue_of(manifest: Manifest) -> tuple[str | None, str]:
    """The queue that a PodGroup names, if it does, and the field that names it."""
    queue = spec(manifest).queue
    return (queue, "spec.queue") if queue else queue_named(manifest.metadata, manifest)


def _min_tasks(manifest: Manifest) -> dict[str, int]:
    written = spec(manifest).min_task_member or {}
    return {
        name: _at_least(low, 0, manifest, f"spec.minTaskMember[{name}]")
        for name, low in written.items()
    }


def _at_least(value: int | None, low: int, manifest: Manifest, field: str) -> int:
    if value is not None and not low <= value <= INT32_MAX:
        manifest.refuse(field, f"{value} is not between {low} and {INT32_MAX}")
        return low
    return low if value is None else value
