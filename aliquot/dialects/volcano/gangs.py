"""PodGroups, of Volcano and of the scheduler plugins: pods that start together or not at all."""

from aliquot.dialects.core import amounts
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.volcano.keys import queue_named
from aliquot.dialects.volcano.objects import PodGroupSpec, PodGroupWire
from aliquot.engine import Gang

KIND = "PodGroup"

_MOST = 2**31 - 1


def gang(
    manifest: Manifest, queue: str | None = None, priority: int | None = None, created: int = 0
) -> Gang:
    """A group as the engine sees it; `queue` is where it belongs if it does not say.

    Where the fewest of all tasks add up to more than the fewest of the whole, the tasks do not
    count: otherwise the group could never be content with its own minimum.
    """
    said = spec(manifest)
    tasks = tuple(sorted((name, few) for name, few in _tasks(manifest).items() if few))
    fewest = _at_least(said.min_member, 1, manifest, "spec.minMember")
    wanted = amounts.read(said.min_resources, manifest, "spec.minResources")
    return Gang(
        name=gang_name(manifest),
        min_member=fewest,
        min_tasks=tasks if sum(few for _, few in tasks) <= fewest else (),
        min_resources=tuple(sorted(wanted.items())),
        quota=queue_of(manifest)[0] or queue,
        priority=priority,
        created=created,
    )


def spec(manifest: Manifest) -> PodGroupSpec:
    """What is written about it; an empty one, if nothing is."""
    read = manifest.content
    assert isinstance(read, PodGroupWire)
    return read.spec or PodGroupSpec()


def gang_name(manifest: Manifest) -> str:
    """What a gang goes by everywhere: `namespace/name`."""
    return f"{manifest.namespace}/{manifest.name}"


def queue_of(manifest: Manifest) -> tuple[str | None, str]:
    """The queue that a group names, if it does, and where."""
    said = spec(manifest).queue
    return (said, "spec.queue") if said else queue_named(manifest.metadata, manifest)


def _tasks(manifest: Manifest) -> dict[str, int]:
    written = spec(manifest).min_task_member or {}
    return {
        name: _at_least(few, 0, manifest, f"spec.minTaskMember[{name}]")
        for name, few in written.items()
    }


def _at_least(value: int | None, low: int, manifest: Manifest, field: str) -> int:
    if value is not None and not low <= value <= _MOST:
        raise manifest.error(field, f"{value} is not between {low} and {_MOST}")
    return low if value is None else value
