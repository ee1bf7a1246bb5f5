"""The keys by which pods and Volcano's objects refer to each other.

Pods of the scheduler plugins name their group by a label; they are read the same way. Nothing here
asks whether what is named is there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aliquot.dialects.core.labels import text
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import Metadata

GROUP_ANNOTATIONS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
GROUP_LABELS = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")
QUEUE = "scheduling.volcano.sh/queue-name"
JOB_QUEUE = "volcano.sh/queue-name"
"""A label, which Volcano puts on the pods of its Jobs."""
TASK = "volcano.sh/task-spec"
JOB = "volcano.sh/job-name"
PREEMPTABLE = "volcano.sh/preemptable"
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
MIN_RESOURCES = "scheduling.volcano.sh/group-min-resources"

_TYING_ANNOTATIONS = {*GROUP_ANNOTATIONS, QUEUE, TASK}
_TYING_LABELS = {*GROUP_LABELS, JOB_QUEUE}
_YES = {"1", "t", "T", "TRUE", "true", "True"}


@dataclass(frozen=True, slots=True)
class GroupRef:
    """What a pod says about where it belongs."""

    gang: str | None = None
    """The bare name of its group."""
    gang_field: str = ""
    queue: str | None = None
    queue_field: str = ""
    task: str = ""


NO_TIES = GroupRef()


def group_ref(metadata: Metadata, manifest: Manifest, field: str = "metadata") -> GroupRef:
    """What the metadata of a pod say; two words that differ are refused."""
    # Most pods have none of these keys, and are read again with every change.
    if _TYING_ANNOTATIONS.isdisjoint(metadata.annotations or ()) and _TYING_LABELS.isdisjoint(
        metadata.labels or ()
    ):
        return NO_TIES
    gang, gang_field = word(
        [
            *((metadata.annotations, f"{field}.annotations", key) for key in GROUP_ANNOTATIONS),
            *((metadata.labels, f"{field}.labels", key) for key in GROUP_LABELS),
        ],
        manifest,
    )
    queue, queue_field = queue_named(metadata, manifest, field)
    task, _ = word([(metadata.annotations, f"{field}.annotations", TASK)], manifest)
    return GroupRef(gang, gang_field, queue, queue_field, task or "")


def queue_named(
    metadata: Metadata, manifest: Manifest, field: str = "metadata"
) -> tuple[str | None, str]:
    """The queue that metadata name, if they do, and where."""
    if QUEUE not in (metadata.annotations or ()) and JOB_QUEUE not in (metadata.labels or ()):
        return None, ""
    places = [
        (metadata.annotations, f"{field}.annotations", QUEUE),
        (metadata.labels, f"{field}.labels", JOB_QUEUE),
    ]
    return word(places, manifest)


def is_preemptable(metadata: Metadata) -> bool:
    """May a pod be asked to go? Its annotation says so, else its label; nonsense means no."""
    for values in (metadata.annotations, metadata.labels):
        if PREEMPTABLE in (values or {}):
            return text((values or {})[PREEMPTABLE]) in _YES
    return True


def word(
    places: Sequence[tuple[Mapping[str, Any] | None, str, str]], manifest: Manifest
) -> tuple[str | None, str]:
    """One name and where it stands; under several keys, it must be the same."""
    found: dict[str, str] = {}
    for values, field, key in places:
        value = (values or {}).get(key)
        if isinstance(value, dict | list):
            raise manifest.error(f"{field}[{key}]", "must be text")
        if text(value):
            found[f"{field}[{key}]"] = text(value)
    (first, said), *others = found.items() or [("", None)]
    for field, other in others:
        if other != said:
            raise manifest.error(field, f"is {other!r}, but {first} is {said!r}")
    return said, first
