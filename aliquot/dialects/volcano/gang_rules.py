"""Rules for PodGroups and Volcano Jobs: one function a rule.

A rule yields findings; it never raises and never changes anything. Numbers out of range are refused
in `gangs` and `jobs`, where they are read.
"""

from collections.abc import Iterator

from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.pod_templates import template_views
from aliquot.dialects.volcano import declared_gangs, gangs, jobs
from aliquot.dialects.volcano.keys import MIN_MEMBER, MIN_RESOURCES
from aliquot.dialects.volcano.made_groups import group_name
from aliquot.dialects.volcano.objects import GangJobWire


def check_gang(manifest: Manifest) -> Iterator[Finding]:
    """Warnings about one PodGroup."""
    spec = gangs.spec(manifest)
    yield from task_minimums_within_min_member(manifest)
    ignored = {
        "spec.scheduleTimeoutSeconds": spec.schedule_timeout_seconds,
        "spec.subGroupPolicy": spec.sub_group_policy,
    }
    yield from _not_considered(manifest, ignored)


def check_job(manifest: Manifest) -> Iterator[Finding]:
    """Warnings about one Volcano Job."""
    spec = jobs.spec(manifest)
    ignored: dict[str, object] = {"spec.policies": spec.policies}
    for number, task in enumerate(spec.tasks or []):
        at = f"spec.tasks[{number}]"
        ignored[f"{at}.dependsOn"] = task.depends_on
        ignored[f"{at}.policies"] = task.policies
        ignored[f"{at}.partitionPolicy"] = task.partition_policy
        ignored[f"{at}.topologyPolicy"] = task.topology_policy not in (None, "", "none")
    yield from _not_considered(manifest, ignored)


def check_member(manifest: Manifest) -> Iterator[Finding]:
    """Warn of gang annotations on an object for which Volcano makes no PodGroup.

    Annotations on a workload ask for one, unless its pods name a group; on pods and on Volcano Jobs
    they have no effect.
    """
    if group_name(manifest) is not None and not isinstance(manifest.content, GangJobWire):
        return
    places = [("metadata", manifest.metadata)]
    places += [(each.metadata_field, each.metadata) for each in template_views(manifest) if each.at]
    for where, metadata in places:
        for key in (MIN_MEMBER, MIN_RESOURCES):
            if key in (metadata.annotations or {}):
                problem = "has no effect here; write a PodGroup, and name it in the pods"
                yield manifest.finding("warning", f"{where}.annotations[{key}]", problem)


def check_waiting_times(manifest: Manifest) -> Iterator[Finding]:
    """Warn of how long a gang may hold room for pods that find none: no gang holds any."""
    places = [("metadata", manifest.metadata)]
    places += [(each.metadata_field, each.metadata) for each in template_views(manifest) if each.at]
    for where, metadata in places:
        for key in declared_gangs.NO_EFFECT:
            if key in (metadata.annotations or {}):
                problem = "has no effect: a gang waits for as long as it takes"
                yield manifest.finding("warning", f"{where}.annotations[{key}]", problem)


def task_minimums_within_min_member(manifest: Manifest) -> Iterator[Finding]:
    """Warn of minTaskMember that has no effect because its sum is above minMember."""
    min_member = gangs.gang(manifest).min_member
    total = sum((gangs.spec(manifest).min_task_member or {}).values())
    if total > min_member:
        problem = (
            f"has no effect: the tasks need {total} pods together, and minMember is {min_member}"
        )
        yield manifest.finding("warning", "spec.minTaskMember", problem)


def _not_considered(manifest: Manifest, ignored: dict[str, object]) -> Iterator[Finding]:
    for where, value in ignored.items():
        if value:
            yield manifest.finding("warning", where, "is not considered yet")
