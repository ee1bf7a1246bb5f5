"""The lifetime of a pod, as far as its object states it: its start, its end, its grace period.

The scheduler knows no other ends. How long a pod really runs in a simulation
(`simulation_annotations`) is the simulated world's knowledge and never gets here.
"""

from aliquot.dialects.core.manifest import Manifest, owner_of
from aliquot.dialects.core.objects import PodSpec, PodStatus, PodWire
from aliquot.dialects.core.pod_templates import PodTemplateView, template_views
from aliquot.dialects.core.times import duration, timestamp

EXPECTED_DURATION = "aliquot.dev/expected-duration"
_DEFAULT_GRACE_PERIOD = 30 * 10**9
"""The API server's default of spec.terminationGracePeriodSeconds, in nanoseconds."""
_ENDLESS_OWNERS = {
    *("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet"),
    "CloneSet",
    "Node",
}
"""The kinds whose pods are restarted when they end; a Node owns its static pods. All other
controllers, such as Jobs, Volcano Jobs and JobSets, have pods that end."""


def check(manifest: Manifest) -> None:
    """Refuse a pod, or a workload, that states times which are none."""
    for view in template_views(manifest):
        _expected_duration(manifest, view)
    if isinstance(manifest.content, PodWire):
        start_time(manifest, manifest.content.status or PodStatus())
        grace_period(manifest, manifest.content.spec or PodSpec())


def expected_duration(manifest: Manifest, spec: PodSpec) -> int | None:
    """How long a pod runs at most, or is expected to run, from its start; None if unknown.

    Its activeDeadlineSeconds, or the annotation `aliquot.dev/expected-duration`: the shorter.
    """
    if spec.active_deadline_seconds is None and not manifest.metadata.annotations:
        return None  # as of most pods, of which there are many
    return _expected_duration(manifest, PodTemplateView("", manifest.metadata, spec))


def _expected_duration(manifest: Manifest, view: PodTemplateView) -> int | None:
    found = []
    deadline = view.spec.active_deadline_seconds if view.spec is not None else None
    if deadline is not None:
        field = f"{view.spec_field}.activeDeadlineSeconds"
        if deadline < 1:
            raise manifest.error(field, f"is {deadline}, must be at least 1")
        found.append(_duration(deadline, manifest, field))
    written = (view.metadata.annotations or {}).get(EXPECTED_DURATION)
    if written is not None:
        field = f"{view.metadata_field}.annotations[{EXPECTED_DURATION}]"
        found.append(_duration(written, manifest, field))
    return min(found, default=None)


def is_endless(manifest: Manifest) -> bool:
    """Does the pod's controller keep it running for good?"""
    owner = owner_of(manifest)
    return owner is not None and owner[0] in _ENDLESS_OWNERS


def grace_period(manifest: Manifest, spec: PodSpec) -> int:
    """How long a pod takes to terminate, at most: as its deletion states, else its spec."""
    stated = manifest.metadata.deletion_grace_period_seconds
    if stated is None:
        stated = spec.termination_grace_period_seconds
    if stated is None:
        return _DEFAULT_GRACE_PERIOD
    return _duration(max(stated, 0), manifest, "metadata.deletionGracePeriodSeconds")


def start_time(manifest: Manifest, status: PodStatus) -> int | None:
    """When a bound pod was started; until its kubelet says so, when it was bound."""
    if status.start_time is not None:
        return timestamp(status.start_time, manifest.place, "status.startTime")
    for each in status.conditions or ():
        if each.type == "PodScheduled" and each.status == "True":
            field = "status.conditions[PodScheduled].lastTransitionTime"
            return timestamp(each.last_transition_time, manifest.place, field)
    return None


def _duration(stated: object, manifest: Manifest, field: str) -> int:
    return duration(stated, f"{manifest.place}: {manifest.title}", field)
