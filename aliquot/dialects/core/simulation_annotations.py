"""The annotations that only a simulation reads: when an object comes, and how long a pod runs."""

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import Metadata
from aliquot.dialects.core.pod_templates import template_views
from aliquot.dialects.core.times import duration

ARRIVAL = "sim.aliquot.dev/arrival"
DURATION = "sim.aliquot.dev/duration"


def arrival(manifest: Manifest) -> int:
    """When the object comes; a workload may say so in its template, too."""
    said = _of_pods(manifest, ARRIVAL)
    own = _read(manifest, "metadata", manifest.metadata, ARRIVAL)
    return next((each for each in (*said, own) if each is not None), 0)


def duration_of(manifest: Manifest) -> int | None:
    """How long the pod, or each pod of the workload, runs; None for ever.

    Where there are several kinds of pods, what a template says holds for its own pods only.
    """
    said = _of_pods(manifest, DURATION)
    own = _read(manifest, "metadata", manifest.metadata, DURATION)
    return said[0] if len(said) == 1 and said[0] is not None else own


def _of_pods(manifest: Manifest, key: str) -> list[int | None]:
    return [
        _read(manifest, each.metadata_field, each.metadata, key)
        for each in template_views(manifest)
    ]


def _read(manifest: Manifest, field: str, metadata: Metadata, key: str) -> int | None:
    value = (metadata.annotations or {}).get(key)
    if value is None:
        return None
    place = f"{manifest.place}: {manifest.title}"
    return duration(value, place, f"{field}.annotations[{key}]")
