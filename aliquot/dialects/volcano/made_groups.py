"""The PodGroups that nobody writes.

Volcano makes one for each of its Jobs, under the Job's name. Other owners of pods ask for one by
annotation, on themselves or on their template: so many pods that start together, or so much that
they need.
"""

import json
from collections.abc import Mapping

from aliquot.dialects.core import amounts, pods
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.labels import text
from aliquot.dialects.core.manifest import VOLCANO_GROUP, Manifest, owner_reference, read
from aliquot.dialects.core.objects import Metadata, PodSpec, Quantities, WorkloadWire
from aliquot.dialects.core.pod_templates import template_views
from aliquot.dialects.nos.cards import Cards
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


def group_name(manifest: Manifest) -> str | None:
    """The name of the group that is made for an object, if one is."""
    if isinstance(manifest.content, GangJobWire):
        return manifest.name
    return f"podgroup-{manifest.name}" if _asks(manifest) else None


def group_ref(manifest: Manifest) -> GroupRef | None:
    """What all pods of an object say for which a group is made; None if there is no group."""
    if isinstance(manifest.content, GangJobWire):
        return GroupRef(queue=jobs.queue(manifest), queue_field="spec.queue")
    if not _asks(manifest):
        return None
    fields = (_word(manifest, key)[1] for key in (MIN_MEMBER, MIN_RESOURCES))
    asked = next(field for field in fields if field)
    (face,) = template_views(manifest)
    own = volcano.group_ref(face.metadata, manifest, face.metadata_field)
    queue, queue_field = volcano.queue_named(manifest.metadata, manifest)
    if queue is None:
        queue, queue_field = own.queue, own.queue_field
    elif own.queue not in (None, queue):
        raise manifest.error(own.queue_field, f"is {own.queue!r}, but {queue_field} is {queue!r}")
    return GroupRef(group_name(manifest), asked, queue, queue_field, own.task)


def pod_group(manifest: Manifest, priorities: Mapping[str, int] | None = None) -> Manifest:
    """The group that is made for an object; `priorities` are those of a Job's tasks."""
    spec = (
        _of_job(manifest, priorities or {})
        if isinstance(manifest.content, GangJobWire)
        else _of_owner(manifest)
    )
    metadata: Body = {
        "name": group_name(manifest),
        "namespace": manifest.namespace,
        "ownerReferences": [owner_reference(manifest)],
    }
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
    fewest = max(jobs.fewest(manifest), 1)
    return {
        "minMember": fewest,
        "minTaskMember": {task.name: task.fewest for task in jobs.tasks(manifest)},
        "minResources": _least(manifest, fewest, priorities),
        "queue": jobs.queue(manifest),
        "priorityClassName": jobs.spec(manifest).priority_class_name,
    }


def _least(manifest: Manifest, fewest: int, priorities: Mapping[str, int]) -> dict[str, str]:
    """What the most important pods of a Job ask for together, as many as must be able to start.

    Counted are its tasks by priority, then as they stand, all replicas of each.
    """
    parts: list[Amounts] = []
    tasks = list(zip(jobs.tasks(manifest), template_views(manifest), strict=True))
    for task, face in sorted(tasks, key=lambda pair: -priorities.get(pair[0].name, 0)):
        count = min(task.replicas, fewest)
        shape = pods.shape(face.spec, None, manifest, Cards(), face.spec_field)
        parts.append(tuple((name, amount * count) for name, amount in shape.requests))
        fewest -= count
    total = {name: amount for name, amount in add_amounts(*parts) if amount and name != "pods"}
    return amounts.write(total)


def _of_owner(manifest: Manifest) -> Body:
    (face,) = template_views(manifest)
    said = group_ref(manifest)
    return {
        "minMember": _min_member(manifest),
        "minResources": _min_resources(manifest),
        "queue": said.queue if said is not None else None,
        "priorityClassName": (face.spec or PodSpec()).priority_class_name,
    }


def _asks(manifest: Manifest) -> bool:
    """Does an owner of pods ask for a group? Pods that name one are in that instead."""
    if not isinstance(manifest.content, WorkloadWire):
        return False
    pods_name_one = any(
        key in {**(face.metadata.annotations or {}), **(face.metadata.labels or {})}
        for face in template_views(manifest)
        for key in (*GROUP_ANNOTATIONS, *GROUP_LABELS)
    )
    return not pods_name_one and any(
        text((metadata.annotations or {}).get(key))
        for _, metadata in _places(manifest)
        for key in (MIN_MEMBER, MIN_RESOURCES)
    )


def _word(manifest: Manifest, key: str) -> tuple[str | None, str]:
    """An annotation of an owner or of its template, and where it stands."""
    places = _places(manifest)
    written = [(metadata.annotations, f"{at}.annotations", key) for at, metadata in places]
    return volcano.word(written, manifest)


def _places(manifest: Manifest) -> list[tuple[str, Metadata]]:
    of_pods = [(face.metadata_field, face.metadata) for face in template_views(manifest)]
    return [("metadata", manifest.metadata), *of_pods]


def _min_member(manifest: Manifest) -> int:
    word, field = _word(manifest, MIN_MEMBER)
    if word is None:
        return 1
    is_number = word.isascii() and word.isdigit() and len(word) <= _MOST_DIGITS
    if not is_number or int(word) < 1:
        raise manifest.error(field, f"{word!r} is no whole number of at least 1")
    return int(word)


def _min_resources(manifest: Manifest) -> Quantities:
    word, field = _word(manifest, MIN_RESOURCES)
    try:
        found = json.loads(word or "{}")
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        problem = f"{word!r} is no JSON map of quantities, such as " + '{"cpu": "4"}'
        raise manifest.error(field, problem)
    return amounts.write(amounts.read(found, manifest, field))
