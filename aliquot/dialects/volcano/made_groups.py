"""The PodGroups that Volcano's controllers make.

Each Volcano Job has one, under the Job's name. Another workload asks for one by annotation, on
itself or on its template: how many pods start together, or what they need together.
"""

import json
from collections.abc import Mapping

import msgspec

from aliquot.dialects.core import amounts, pods
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.labels import to_text
from aliquot.dialects.core.manifest import VOLCANO_GROUP, Manifest, owner_reference, read
from aliquot.dialects.core.objects import Metadata, PodSpec, Quantities, WorkloadWire
from aliquot.dialects.core.pod_templates import template_views
from aliquot.dialects.nos.cards import Cards
from aliquot.dialects.topology import copied
from aliquot.dialects.volcano import jobs
from aliquot.dialects.volcano import keys as volcano
from aliquot.dialects.volcano.keys import (
    GROUP_ANNOTATIONS,
    GROUP_LABELS,
    MIN_MEMBER,
    MIN_RESOURCES,
    GroupRef,
)
from aliquot.dialects.volcano.objects import GangJobWire
from aliquot.engine import Amounts, add_amounts
from aliquot.json import Body

_MOST_DIGITS = 9
"""More digits than these could exceed the int32 of the API's field."""


def group_name(manifest: Manifest) -> str | None:
    """The name of the PodGroup that is made for an object, if one is."""
    if isinstance(manifest.content, GangJobWire):
        return manifest.name
    return f"podgroup-{manifest.name}" if _asks_for_group(manifest) else None


def group_ref(manifest: Manifest) -> GroupRef | None:
    """The group and queue of all pods of an object for which a PodGroup is made; else None."""
    if isinstance(manifest.content, GangJobWire):
        return GroupRef(queue=jobs.queue(manifest), queue_field="spec.queue")
    if not _asks_for_group(manifest):
        return None
    fields = (_annotation(manifest, key)[1] for key in (MIN_MEMBER, MIN_RESOURCES))
    gang_field = next(field for field in fields if field)
    (view,) = template_views(manifest)
    own = volcano.group_ref(view.metadata, manifest, view.metadata_field)
    queue, queue_field = volcano.queue_named(manifest.metadata, manifest)
    if queue is None:
        queue, queue_field = own.queue, own.queue_field
    elif own.queue not in (None, queue):
        manifest.refuse(own.queue_field, f"is {own.queue!r}, but {queue_field} is {queue!r}")
    return GroupRef(group_name(manifest), gang_field, queue, queue_field, own.task)


def pod_group(manifest: Manifest, priorities: Mapping[str, int] | None = None) -> Manifest:
    """The PodGroup that is made for an object; `priorities` are those of a Job's tasks."""
    spec = (
        _of_job(manifest, priorities or {})
        if isinstance(manifest.content, GangJobWire)
        else _of_owner(manifest)
    )
    metadata: Body = {
        "name": group_name(manifest),
        "namespace": manifest.namespace,
        "ownerReferences": [owner_reference(manifest.body)],
    }
    annotations = copied(manifest)
    if not volcano.is_preemptable(manifest.metadata):
        annotations |= volcano.NOT_PREEMPTABLE
    if annotations:
        metadata["annotations"] = annotations
    if manifest.metadata.creation_timestamp is not None:
        metadata["creationTimestamp"] = manifest.metadata.creation_timestamp
    body = {
        "apiVersion": f"{VOLCANO_GROUP}/v1beta1",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": {word: value for word, value in spec.items() if value},
    }
    made = read(Document(manifest.place, body))
    assert made is not None
    return made


def _of_job(manifest: Manifest, priorities: Mapping[str, int]) -> Body:
    min_available = max(jobs.min_available(manifest), 1)
    return {
        "minMember": min_available,
        "minTaskMember": {task.name: task.min_available for task in jobs.tasks(manifest)},
        "minResources": _min_resources_of_job(manifest, min_available, priorities),
        "queue": jobs.queue(manifest),
        "priorityClassName": jobs.spec(manifest).priority_class_name,
        "networkTopology": _network_topology(manifest),
    }


def _network_topology(manifest: Manifest) -> Body | None:
    """How near to each other the pods of a Job run, as it says."""
    written = jobs.spec(manifest).network_topology
    found: Body = {} if written is None else msgspec.to_builtins(written)
    return {word: value for word, value in found.items() if value is not None}


def _min_resources_of_job(
    manifest: Manifest, min_available: int, priorities: Mapping[str, int]
) -> dict[str, str]:
    """What the first `min_available` pods of a Job request together.

    Its tasks are taken by priority, then in the order of the spec, all replicas of each.
    """
    parts: list[Amounts] = []
    tasks = list(zip(jobs.tasks(manifest), template_views(manifest), strict=True))
    for task, view in sorted(tasks, key=lambda pair: -priorities.get(pair[0].name, 0)):
        count = min(task.replicas, min_available)
        shape = pods.shape(view.spec, None, manifest, Cards(), view.spec_field)
        parts.append(tuple((name, amount * count) for name, amount in shape.requests))
        min_available -= count
    total = {name: amount for name, amount in add_amounts(*parts) if amount and name != "pods"}
    return amounts.write(total)


def _of_owner(manifest: Manifest) -> Body:
    (view,) = template_views(manifest)
    ref = group_ref(manifest)
    return {
        "minMember": _min_member(manifest),
        "minResources": _min_resources(manifest),
        "queue": ref.queue if ref is not None else None,
        "priorityClassName": (view.spec or PodSpec()).priority_class_name,
    }


def _asks_for_group(manifest: Manifest) -> bool:
    """Does a workload ask for a PodGroup? Not if its pods name one: they are in that instead."""
    if not isinstance(manifest.content, WorkloadWire) or manifest.kind == "DaemonSet":
        return False
    pods_name_one = any(
        key in {**(view.metadata.annotations or {}), **(view.metadata.labels or {})}
        for view in template_views(manifest)
        for key in (*GROUP_ANNOTATIONS, *GROUP_LABELS)
    )
    return not pods_name_one and any(
        to_text((metadata.annotations or {}).get(key))
        for _, metadata in _places(manifest)
        for key in (MIN_MEMBER, MIN_RESOURCES)
    )


def _annotation(manifest: Manifest, key: str) -> tuple[str | None, str]:
    """An annotation of a workload or of its template, and its field."""
    places = _places(manifest)
    written = [(metadata.annotations, f"{at}.annotations", key) for at, metadata in places]
    return volcano.read_name(written, manifest)


def _places(manifest: Manifest) -> list[tuple[str, Metadata]]:
    of_pods = [(view.metadata_field, view.metadata) for view in template_views(manifest)]
    return [("metadata", manifest.metadata), *of_pods]


def _min_member(manifest: Manifest) -> int:
    written, field = _annotation(manifest, MIN_MEMBER)
    if written is None:
        return 1
    is_number = written.isascii() and written.isdigit() and len(written) <= _MOST_DIGITS
    if not is_number or int(written) < 1:
        manifest.refuse(field, f"{written!r} is no whole number of at least 1")
        return 1
    return int(written)


def _min_resources(manifest: Manifest) -> Quantities:
    written, field = _annotation(manifest, MIN_RESOURCES)
    try:
        found = json.loads(written or "{}")
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        problem = f"{written!r} is no JSON map of quantities, such as " + '{"cpu": "4"}'
        manifest.refuse(field, problem)
        return {}
    return amounts.write(amounts.read(found, manifest, field))
