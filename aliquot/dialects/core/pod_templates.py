"""Pod templates: metadata and spec of the pods that an object makes, with their fields.

A pod has one view, of itself; a workload one, of its template; a Volcano Job one for each task. So
a rule about pods is written once for all of them.
"""

from dataclasses import dataclass
from functools import partial

from aliquot.dialects.core.manifest import Manifest, convert
from aliquot.dialects.core.objects import (
    CronJobSpec,
    CronJobWire,
    JobTemplate,
    Metadata,
    PodSpec,
    PodTemplate,
    PodWire,
    WorkloadSpec,
    WorkloadWire,
)
from aliquot.dialects.frameworks import gangs
from aliquot.dialects.frameworks.objects import JobWire
from aliquot.dialects.frameworks.table import Role
from aliquot.dialects.volcano.objects import GangJobSpec, GangJobWire
from aliquot.errors import InputError

WORKLOADS = WorkloadWire | GangJobWire | JobWire
"""The objects that make pods, and replace those that are lost."""


@dataclass(frozen=True, slots=True)
class PodTemplateView:
    """Metadata and spec of pods, and the fields that hold them."""

    at: str
    """The prefix of their fields, such as `spec.template.`; empty for a pod by itself."""
    metadata: Metadata
    spec: PodSpec | None

    @property
    def metadata_field(self) -> str:
        """The field of the metadata."""
        return f"{self.at}metadata"

    @property
    def spec_field(self) -> str:
        """The field of the spec."""
        return f"{self.at}spec"


def template_views(manifest: Manifest) -> list[PodTemplateView]:
    """The pod templates of an object, or the pod itself; none for kinds that make no pods."""
    match manifest.content:
        case PodWire(metadata=metadata, spec=spec):
            return [PodTemplateView("", metadata, spec)]
        case WorkloadWire(spec=workload):
            return _of([("spec.template.", (workload or WorkloadSpec()).template)])
        case CronJobWire(spec=cron_job):
            job_template = (cron_job or CronJobSpec()).job_template or JobTemplate()
            written = (job_template.spec or WorkloadSpec()).template
            return _of([("spec.jobTemplate.spec.template.", written)])
        case JobWire():
            return _of_roles(manifest)
        case GangJobWire(spec=job):
            tasks = (job or GangJobSpec()).tasks or []
            return _of(
                [(f"spec.tasks[{i}].template.", task.template) for i, task in enumerate(tasks)]
            )
    return []


def _of_roles(manifest: Manifest) -> list[PodTemplateView]:
    """The templates of a job's roles, each once."""
    views = []
    for role in {each.at: each for each in gangs.roles(manifest)}.values():
        place = f"{manifest.place}: {manifest.title}"
        template = manifest.attempt(partial(_template, role, place))
        if template is not None:
            metadata = template.metadata or Metadata()
            views.append(PodTemplateView(f"{role.at}.", metadata, template.spec))
    return views


def _template(role: Role, place: str) -> PodTemplate:
    try:
        return convert(role.template, PodTemplate, place)
    except InputError as error:
        raise InputError(error.place, f"{role.at}.{error.field}", error.problem) from None


def _of(written: list[tuple[str, PodTemplate | None]]) -> list[PodTemplateView]:
    return [
        PodTemplateView(at, template.metadata or Metadata(), template.spec)
        for at, template in written
        if template is not None
    ]
