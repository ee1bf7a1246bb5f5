"""Which gang and which queue a pod belongs to, by the objects of now.

A gang is in one queue as a whole, so the queue of the PodGroup comes before the pod's own, and that
before the namespace's. A pod that has a queue by none of these is in the policy's default queue.
"""

from collections.abc import Mapping

from aliquot.dialects.core.manifest import Key, Manifest, key
from aliquot.dialects.core.pod_templates import PodTemplateView
from aliquot.dialects.volcano import gangs, made_groups
from aliquot.dialects.volcano import keys as volcano
from aliquot.dialects.volcano.keys import GroupRef

Objects = Mapping[Key, Manifest]


def group_ref(view: PodTemplateView, manifest: Manifest) -> GroupRef:
    """The group and queue that a pod names; if a PodGroup is made for its workload, that one's."""
    return made_groups.group_ref(manifest) or volcano.group_ref(
        view.metadata, manifest, view.metadata_field
    )


def group_key(ref: GroupRef, namespace: str) -> Key | None:
    """The key of the PodGroup that a pod names, if it does."""
    return None if ref.gang is None else key(gangs.KIND, namespace, ref.gang)


def group_of(ref: GroupRef, namespace: str, objects: Objects) -> Manifest | None:
    """The PodGroup that a pod names, if it exists."""
    named = group_key(ref, namespace)
    return objects.get(named) if named is not None else None


def queue_of(ref: GroupRef, namespace: str, objects: Objects) -> str | None:
    """The queue of a pod; None if neither its PodGroup, nor it, nor its namespace names one."""
    group = group_of(ref, namespace, objects)
    named = gangs.queue_of(group)[0] if group is not None else None
    return named or ref.queue or namespace_queue(namespace, objects)


def namespace_queue(namespace: str, objects: Objects) -> str | None:
    """The queue that a namespace names for its pods, if it does."""
    found = objects.get(key("Namespace", "", namespace))
    return volcano.queue_named(found.metadata, found)[0] if found is not None else None
