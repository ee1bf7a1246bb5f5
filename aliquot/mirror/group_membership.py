"""Which gang and which queue a pod belongs to, as the objects of the moment have it.

A gang is in one queue as a whole, so its word counts before a pod's own; then that of the
namespace. Who is in no queue by any of these, the policy puts into the default one.
"""

from collections.abc import Mapping

from aliquot.dialects.core.manifest import Key, Manifest, key
from aliquot.dialects.core.pod_templates import PodTemplateView
from aliquot.dialects.volcano import gangs, made_groups
from aliquot.dialects.volcano import keys as volcano
from aliquot.dialects.volcano.keys import GroupRef

Objects = Mapping[Key, Manifest]


def group_ref(view: PodTemplateView, manifest: Manifest) -> GroupRef:
    """What a pod, or what makes it, says: who has a group made for it speaks for all its pods."""
    return made_groups.group_ref(manifest) or volcano.group_ref(
        view.metadata, manifest, view.metadata_field
    )


def group_key(said: GroupRef, namespace: str) -> Key | None:
    """The key of the PodGroup that is named, if one is."""
    return None if said.gang is None else key(gangs.KIND, namespace, said.gang)


def group_of(said: GroupRef, namespace: str, objects: Objects) -> Manifest | None:
    """The PodGroup that is named, if it is there."""
    named = group_key(said, namespace)
    return objects.get(named) if named is not None else None


def queue_of(said: GroupRef, namespace: str, objects: Objects) -> str | None:
    """The queue of a pod that says this; None if nobody names any."""
    group = group_of(said, namespace, objects)
    named = gangs.queue_of(group)[0] if group is not None else None
    return named or said.queue or namespace_queue(namespace, objects)


def namespace_queue(namespace: str, objects: Objects) -> str | None:
    """The queue of a namespace's pods, if it has one."""
    found = objects.get(key("Namespace", "", namespace))
    return volcano.queue_named(found.metadata, found)[0] if found is not None else None
