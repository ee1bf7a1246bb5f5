"""The annotations that only a simulation reads: when an object comes, and how long a pod runs."""

from aliquot.dialects.manifest import Manifest
from aliquot.dialects.times import duration
from aliquot.dialects.wire import WorkloadWire

ARRIVAL = "sim.aliquot.dev/arrival"
DURATION = "sim.aliquot.dev/duration"


def arrival(manifest: Manifest) -> int:
    """When the object comes; a workload may say so in its template, too."""
    return _read(manifest, ARRIVAL) or 0


def lasts(manifest: Manifest) -> int | None:
    """How long the pod, or each pod of the workload, runs; None for ever."""
    return _read(manifest, DURATION)


def _read(manifest: Manifest, key: str) -> int | None:
    fields = [("metadata", manifest.metadata)]
    content = manifest.content
    if isinstance(content, WorkloadWire) and content.spec is not None and content.spec.template:
        template = content.spec.template.metadata
        if template is not None:
            fields.insert(0, ("spec.template.metadata", template))
    for field, metadata in fields:
        value = (metadata.annotations or {}).get(key)
        if value is not None:
            place = f"{manifest.place}: {manifest.title}"
            return duration(value, place, f"{field}.annotations[{key}]")
    return None
