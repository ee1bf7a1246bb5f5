"""The annotations that only a simulation reads: an object's arrival, a pod's duration and grace."""

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import Metadata, PodWire
from aliquot.dialects.core.pod_templates import template_views
from aliquot.dialects.core.times import duration

ARRIVAL = "sim.aliquot.dev/arrival"
DURATION = "sim.aliquot.dev/duration"
GRACE = "sim.aliquot.dev/grace"


def arrival(manifest: Manifest) -> int:
    """When the object arrives; a workload may carry the annotation in its template, too."""
    in_templates = _of_templates(manifest, ARRIVAL)
    own = _read(manifest, "metadata", manifest.metadata, ARRIVAL)
    return next((each for each in (*in_templates, own) if each is not None), 0)


def duration_of(manifest: Manifest) -> int | None:
    """How long the pod, or each pod of the workload, runs; None if it never ends."""
    return _of_pods(manifest, DURATION)


def grace_of(manifest: Manifest) -> int | None:
    """How long the pod, or each pod of the workload, terminates once it is evicted."""
    return _of_pods(manifest, GRACE)


def _of_pods(manifest: Manifest, key: str) -> int | None:
    """A single template's annotation comes before the object's own.

    Of several templates, each holds for its own pods only, which carry it themselves.
    """
    in_templates = _of_templates(manifest, key)
    own = _read(manifest, "metadata", manifest.metadata, key)
    if len(in_templates) == 1 and in_templates[0] is not None:
        return in_templates[0]
    return own


def _of_templates(manifest: Manifest, key: str) -> list[int | None]:
    if type(manifest.content) is PodWire:
        return []  # the many have no templates: looking for them would be a tenth of reading them
    return [
        _read(manifest, each.metadata_field, each.metadata, key)
        for each in template_views(manifest)
    ]


def _read(manifest: Manifest, field: str, metadata: Metadata, key: str) -> int | None:
    value = (metadata.annotations or {}).get(key)
    if value is None:
        return None
    place = f"{manifest.place}: {manifest.title}"
    where = f"{field}.annotations[{key}]"
    return manifest.attempt(lambda: duration(value, place, where))
