"""How the pods of an owner behave: their priority, and whether they may preempt."""

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import GangJobWire, PodSpec
from aliquot.dialects.core.pod_templates import faces
from aliquot.dialects.core.pods import Manners
from aliquot.dialects.volcano import jobs
from aliquot.mirror.store import Store


def manners(manifest: Manifest, store: Store) -> dict[str, Manners]:
    """Those of the pods of each task; a Job's class is that of all its tasks.

    An owner without tasks has a single one without a name.
    """
    found = faces(manifest)
    if not isinstance(manifest.content, GangJobWire):
        (face,) = found
        return {"": store.priority(face.spec, manifest, face.spec_field)}
    named = jobs.spec(manifest).priority_class_name
    by_task = {}
    for task, face in zip(jobs.tasks(manifest), found, strict=True):
        spec = face.spec or PodSpec()
        if named and not spec.priority_class_name and spec.priority is None:
            spec = PodSpec(priority_class_name=named, preemption_policy=spec.preemption_policy)
        by_task[task.name] = store.priority(spec, manifest, face.spec_field)
    return by_task
