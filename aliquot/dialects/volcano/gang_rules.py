"""The rules that gangs, and Volcano's Jobs, must obey: one function a rule.

A rule yields findings; it never raises and never changes anything. That numbers make sense is seen
to where they are read.
"""

from collections.abc import Iterator

from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.pod_templates import template_views
from aliquot.dialects.volcano import gangs, jobs
from aliquot.dialects.volcano.keys import MIN_MEMBER, MIN_RESOURCES
from aliquot.dialects.volcano.made_groups import group_name
from aliquot.dialects.volcano.objects import GangJobWire


def check_gang(manifest: Manifest) -> Iterator[Finding]:
    """What is wrong with one PodGroup, or worth a word."""
    said = gangs.spec(manifest)
    yield from tasks_that_count(manifest)
    wishes = {
        "spec.scheduleTimeoutSeconds": said.schedule_timeout_seconds,
        "spec.networkTopology": said.network_topology,
        "spec.subGroupPolicy": said.sub_group_policy,
    }
    yield from _not_considered(manifest, wishes)


def check_job(manifest: Manifest) -> Iterator[Finding]:
    """What is wrong with one of Volcano's Jobs, or worth a word."""
    said = jobs.spec(manifest)
    wishes = {"spec.policies": said.policies, "spec.networkTopology": said.network_topology}
    for number, task in enumerate(said.tasks or []):
        at = f"spec.tasks[{number}]"
        wishes[f"{at}.dependsOn"] = task.depends_on
        wishes[f"{at}.policies"] = task.policies
        wishes[f"{at}.partitionPolicy"] = task.partition_policy
        wishes[f"{at}.topologyPolicy"] = task.topology_policy not in (None, "", "none")
    yield from _not_considered(manifest, wishes)


def check_member(manifest: Manifest) -> Iterator[Finding]:
    """Owners of pods ask for a gang by annotation; pods that name one are in that instead."""
    if group_name(manifest) is not None and not isinstance(manifest.content, GangJobWire):
        return
    places = [("metadata", manifest.metadata)]
    places += [(each.metadata_field, each.metadata) for each in template_views(manifest) if each.at]
    for where, metadata in places:
        for key in (MIN_MEMBER, MIN_RESOURCES):
            if key in (metadata.annotations or {}):
                problem = "has no effect here; write a PodGroup, and name it in the pods"
                yield manifest.finding("warning", f"{where}.annotations[{key}]", problem)


def tasks_that_count(manifest: Manifest) -> Iterator[Finding]:
    """A group that starts with fewer pods than its tasks need does not wait for its tasks."""
    fewest = gangs.gang(manifest).min_member
    total = sum((gangs.spec(manifest).min_task_member or {}).values())
    if total > fewest:
        problem = f"has no effect: the tasks need {total} pods together, and minMember is {fewest}"
        yield manifest.finding("warning", "spec.minTaskMember", problem)


def _not_considered(manifest: Manifest, wishes: dict[str, object]) -> Iterator[Finding]:
    for where, value in wishes.items():
        if value:
            yield manifest.finding("warning", where, "is not considered yet")
