"""The keys by which pods and Volcano's objects refer to each other.

Pods of the scheduler plugins name their PodGroup by a label, and are read the same way. Whether the
group or queue that is named exists is not checked here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aliquot.dialects.core.labels import to_text
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import Metadata
from aliquot.dialects.frameworks.members import MARKS as JOB_LABELS
from aliquot.dialects.frameworks.members import JobRef, job_ref
from aliquot.dialects.volcano import declared_gangs
from aliquot.dialects.volcano.declared_gangs import Declaration

GROUP_ANNOTATIONS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
GROUP_LABELS = (
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    declared_gangs.LIGHT_NAME,
)
QUEUE = "scheduling.volcano.sh/queue-name"
JOB_QUEUE = "volcano.sh/queue-name"
"""A label that Volcano puts on the pods of its Jobs."""
TASK = "volcano.sh/task-spec"
"""An annotation; where it is missing, a label."""
JOB = "volcano.sh/job-name"
PREEMPTABLE = "volcano.sh/preemptable"
NOT_PREEMPTABLE = {PREEMPTABLE: "false"}
"""The annotation that the PodGroup and the pods of a Job have if the Job may not be preempted."""
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
MIN_RESOURCES = "scheduling.volcano.sh/group-min-resources"

_REF_ANNOTATIONS = {
    *(*GROUP_ANNOTATIONS, QUEUE, TASK, declared_gangs.NAME, declared_gangs.ENABLED),
}
_REF_LABELS = {*GROUP_LABELS, JOB_QUEUE, TASK, *JOB_LABELS}
_YES = {"1", "t", "T", "TRUE", "true", "True"}


@dataclass(frozen=True, slots=True)
class GroupRef:
    """The PodGroup, queue and task that a pod names, and the fields that name them."""

    gang: str | None = None
    """The name of its PodGroup, which is in the pod's namespace."""
    gang_field: str = ""
    queue: str | None = None
    queue_field: str = ""
    task: str = ""
    job: JobRef | None = None
    """The job of a framework that it is of, if it names no PodGroup; see `frameworks`."""
    declared: Declaration | None = None
    """What it says itself of its gang, which counts if there is no PodGroup of that name."""


NO_GROUP_REF = GroupRef()


def group_ref(metadata: Metadata, manifest: Manifest, field: str = "metadata") -> GroupRef:
    """What the metadata of a pod say; two keys with different values are refused."""
    annotations, labels = metadata.annotations or (), metadata.labels or ()
    # Most pods have none of these keys, and are read again with every change.
    if _REF_ANNOTATIONS.isdisjoint(annotations) and _REF_LABELS.isdisjoint(labels):
        return NO_GROUP_REF
    gang, gang_field = read_name(
        [
            *((metadata.annotations, f"{field}.annotations", key) for key in GROUP_ANNOTATIONS),
            (metadata.annotations, f"{field}.annotations", declared_gangs.NAME),
            *((metadata.labels, f"{field}.labels", key) for key in GROUP_LABELS),
        ],
        manifest,
    )
    queue, queue_field = queue_named(metadata, manifest, field)
    task, _ = read_name([(metadata.annotations, f"{field}.annotations", TASK)], manifest)
    if task is None:
        task, _ = read_name([(metadata.labels, f"{field}.labels", TASK)], manifest)
    declared = None
    if gang is not None:
        declared = declared_gangs.of_koordinator(metadata, manifest, field)
    elif declared_gangs.ENABLED in annotations:
        found = declared_gangs.of_tensor_fusion(metadata, manifest, field)
        if found is not None:
            (gang, declared), gang_field = found, f"{field}.annotations[{declared_gangs.ENABLED}]"
    job = None if gang is not None or JOB_LABELS.isdisjoint(labels) else job_ref(metadata)
    role = job.role if job is not None else ""
    return GroupRef(gang, gang_field, queue, queue_field, task or role, job, declared)


def queue_named(
    metadata: Metadata, manifest: Manifest, field: str = "metadata"
) -> tuple[str | None, str]:
    """The queue that metadata name, if they do, and the field that names it."""
    if QUEUE not in (metadata.annotations or ()) and JOB_QUEUE not in (metadata.labels or ()):
        return None, ""
    places = [
        (metadata.annotations, f"{field}.annotations", QUEUE),
        (metadata.labels, f"{field}.labels", JOB_QUEUE),
    ]
    return read_name(places, manifest)


def is_preemptable(metadata: Metadata) -> bool:
    """May a pod, or may the pods of a PodGroup or Job, be preempted? Yes, unless it says no.

    By its annotation, else its label; of what is written there, only a true value means yes.
    """
    for values in (metadata.annotations, metadata.labels):
        if PREEMPTABLE in (values or {}):
            return to_text((values or {})[PREEMPTABLE]) in _YES
    return True


def read_name(
    places: Sequence[tuple[Mapping[str, Any] | None, str, str]], manifest: Manifest
) -> tuple[str | None, str]:
    """The name under any of these keys, and its field; under several keys it must be the same."""
    found: dict[str, str] = {}
    for values, field, key in places:
        value = (values or {}).get(key)
        if isinstance(value, dict | list):
            manifest.refuse(f"{field}[{key}]", "must be text")
        elif to_text(value):
            found[f"{field}[{key}]"] = to_text(value)
    (first, name), *others = found.items() or [("", None)]
    for field, other in others:
        if other != name:
            manifest.refuse(field, f"is {other!r}, but {first} is {name!r}")
    return name, first
