"""What makes pods, and what they will look like: one view for each kind of pod that comes of it.

A pod has its own view; a workload has that of its template; a Volcano Job has one for each task.
"""

from dataclasses import dataclass

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import (
    Metadata,
    PodSpec,
    PodTemplate,
    PodWire,
    WorkloadSpec,
    WorkloadWire,
)
from aliquot.dialects.volcano.objects import GangJobSpec, GangJobWire

WORKLOADS = WorkloadWire | GangJobWire
"""What makes pods, and replaces those it loses."""


@dataclass(frozen=True, slots=True)
class PodTemplateView:
    """Metadata and spec of pods, and where they stand."""

    at: str
    """`spec.template.`, say; empty for a pod by itself."""
    metadata: Metadata
    spec: PodSpec | None

    @property
    def metadata_field(self) -> str:
        """Where the metadata stand."""
        return f"{self.at}metadata"

    @property
    def spec_field(self) -> str:
        """Where the spec stands."""
        return f"{self.at}spec"


def template_views(manifest: Manifest) -> list[PodTemplateView]:
    """The faces of the pods that come of an object; none where it says nothing of any."""
    match manifest.content:
        case PodWire(metadata=metadata, spec=spec):
            return [PodTemplateView("", metadata, spec)]
        case WorkloadWire(spec=workload):
            return _of([("spec.template.", (workload or WorkloadSpec()).template)])
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
