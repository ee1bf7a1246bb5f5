"""Where the words of a pod are written: in the pod itself, or in the template of its workload.

A workload with several kinds of pods, such as a PyTorchJob, a JobSet or a Volcano Job, has a
template for each task. What is patched inside a list is the whole list, as a JSON merge patch asks.
"""

from typing import Any, NamedTuple

from aliquot.dialects.core.manifest import Manifest, owner_of
from aliquot.dialects.frameworks.fields import Steps
from aliquot.dialects.frameworks.gangs import roles
from aliquot.dialects.frameworks.objects import JobWire
from aliquot.dialects.volcano import jobs
from aliquot.dialects.volcano.objects import GangJobWire
from aliquot.json import Body, fresh
from aliquot.mirror.pod_record import PodRecord
from aliquot.questions.moment import Moment
from aliquot.server.patch.merge import merge_patch

_TEMPLATES: dict[str, Steps] = {
    **dict.fromkeys(("Deployment", "ReplicaSet", "StatefulSet", "Job"), ("spec", "template")),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
"""Where the template of the pods stands in a workload that has one."""


def has_template(manifest: Manifest) -> bool:
    """Is it a workload whose pods have templates?"""
    return manifest.kind in _TEMPLATES or isinstance(manifest.content, GangJobWire | JobWire)


def template_steps(manifest: Manifest, task: str) -> Steps | None:
    """Where the template of the pods of a task stands in a workload; None if it has none."""
    if isinstance(manifest.content, GangJobWire):
        names = [each.name for each in jobs.tasks(manifest)]
        return ("spec", "tasks", names.index(task), "template") if task in names else None
    if isinstance(manifest.content, JobWire):
        found = next((each for each in roles(manifest) if each.name == task), None)
        written = found is not None and at(manifest.body, found.steps) is not None
        return found.steps if found is not None and written else None
    return _TEMPLATES.get(manifest.kind)


def at(body: object, steps: Steps) -> Any:
    """What stands at a path; None if nothing does."""
    for step in steps:
        if isinstance(step, int):
            body = body[step] if isinstance(body, list) and step < len(body) else None
        else:
            body = body.get(step) if isinstance(body, dict) else None
    return body


def nested(body: Body, steps: Steps, field: Body) -> Body:
    """The merge patch of an object that patches what stands at a path."""
    number = next((n for n, step in enumerate(steps) if isinstance(step, int)), None)
    found: Any = field
    if number is not None:
        listed, index = fresh(at(body, steps[:number])), steps[number]
        assert isinstance(index, int)
        inner = nested(listed[index], steps[number + 1 :], field)
        listed[index] = merge_patch(listed[index], inner)
        found, steps = listed, steps[:number]
    for step in reversed(steps):
        found = {step: found}
    patched: Body = found
    return patched


class Written(NamedTuple):
    """The object that a pod's words are written in, and where its template stands; () for a pod."""

    manifest: Manifest
    steps: Steps = ()

    @property
    def is_pod(self) -> bool:
        """Is it the pod's own object?"""
        return not self.steps

    @property
    def spec(self) -> Body:
        """The spec of the pods."""
        return at(self.manifest.body, (*self.steps, "spec")) or {}

    @property
    def annotations(self) -> Body:
        """The annotations of the pods."""
        return at(self.manifest.body, (*self.steps, "metadata", "annotations")) or {}

    def patched(self, *above: str, field: Body) -> Body:
        """The merge patch of fields of the pods, below `above`."""
        return nested(self.manifest.body, (*self.steps, *above), field)


def written_in(moment: Moment, record: PodRecord) -> Written | None:
    """The object that a pod's words are written in: its own, or the highest workload above it."""
    objects = moment.simulation.world.mirror.store.objects
    namespace, _, name = record.pod.path.partition("/")
    own, owner = objects.get(("Pod", namespace, name)), record.owner
    found = Written(own) if own is not None else None
    while owner is not None and (above := objects.get(owner)) is not None:
        steps = template_steps(above, record.group_ref.task)
        if steps is not None:
            found = Written(above, steps)
        owner = owner_of(above)
    return found
