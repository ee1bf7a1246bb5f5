"""Pod templates: metadata and spec of the pods that an object makes, with their fields.

A pod has one view, of itself; a workload one, of its template; a Volcano Job one for each task. So
a rule about pods is written once for all of them.
"""

from dataclasses import dataclass

from aliquot.dialects.core.manifest import Manifest
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
from aliquot.dialects.volcano.objects import GangJobSpec, GangJobWire

WORKLOADS = WorkloadWire | GangJobWire
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
        case GangJobWire(spec=job):
            tasks = (job or GangJobSpec()).tasks or []
            return _of(
                [(f"spec.tasks[{i}].template.", task.template) for i, task in enumerate(tasks)]
            )
    return []


def _of(written: list[tuple[str, PodTemplate | None]]) -> list[PodTemplateView]:
    return [
        PodTemplateView(at, template.metadata or Metadata(), template.spec)
        for at, template in written
        if template is not None
    ]
