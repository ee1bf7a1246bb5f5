"""Priorities: what PriorityClasses make of a pod's spec, by the rules of Kubernetes.

The mirror (and so the scheduler, the webhook, validation and the simulation) and the admission of
the embedded API server resolve priorities here, so that a pod has the same one everywhere.
"""

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import (
    INT32_MAX,
    CronJobWire,
    PodSpec,
    PriorityClassWire,
    WorkloadWire,
)
from aliquot.dialects.core.pod_templates import template_views
from aliquot.dialects.core.pods import PriorityInfo
from aliquot.dialects.frameworks.gangs import job_roles
from aliquot.dialects.frameworks.objects import JobWire
from aliquot.dialects.volcano import jobs
from aliquot.dialects.volcano.objects import GangJobWire
from aliquot.engine import CRITICAL_PRIORITY

CLUSTER_CRITICAL, NODE_CRITICAL = "system-cluster-critical", "system-node-critical"
SYSTEM = {CLUSTER_CRITICAL: CRITICAL_PRIORITY, NODE_CRITICAL: CRITICAL_PRIORITY + 1000}
"""The PriorityClasses that Kubernetes creates itself, and their values."""
HIGHEST_OF_USERS = CRITICAL_PRIORITY // 2
"""The highest value of a user's PriorityClass in Kubernetes; those above are the system's."""


class PriorityClasses:
    """The PriorityClasses of a cluster, by name. Those of the system are there without a put."""

    def __init__(self) -> None:
        self._classes: dict[str, PriorityClassWire] = {}

    def put(self, name: str, content: PriorityClassWire) -> None:
        """Add or replace a class."""
        self._classes[name] = content

    def remove(self, name: str) -> None:
        """Remove a class, if it exists."""
        self._classes.pop(name, None)

    def named(self, name: str) -> PriorityClassWire | None:
        """The class of this name, if it exists."""
        if name in SYSTEM and name not in self._classes:
            return PriorityClassWire(value=SYSTEM[name])
        return self._classes.get(name)

    def default_name(self) -> str | None:
        """The class of pods that name none: of several with `globalDefault`, the lowest value.

        That is the rule of Kubernetes' admission. Of equal values the first name is taken, so that
        the order in which classes were created does not matter.
        """
        marked = [name for name, each in self._classes.items() if each.global_default]
        return min(marked, key=lambda name: (self._classes[name].value or 0, name), default=None)

    def info(self, spec: PodSpec | None, manifest: Manifest, field: str) -> PriorityInfo:
        """A pod's priority and whether it may preempt: by its spec, its class, else the default."""
        spec = spec or PodSpec()
        found = self._class_of(spec, manifest, field)
        value = found.value if found is not None else 0
        policy = spec.preemption_policy or (found.preemption_policy if found is not None else None)
        return spec.priority if spec.priority is not None else value or 0, policy != "Never"

    def infos(self, manifest: Manifest) -> dict[str, PriorityInfo]:
        """The priority info of a workload's pods, by task; without tasks, under "".

        The class of a Volcano Job holds for the tasks that have none.
        """
        found = template_views(manifest)
        if isinstance(manifest.content, JobWire):
            by_place = {view.at: self.info(view.spec, manifest, view.spec_field) for view in found}
            return {task: by_place[f"{role.at}."] for task, role in job_roles(manifest).items()}
        if not isinstance(manifest.content, GangJobWire):
            (view,) = found
            return {"": self.info(view.spec, manifest, view.spec_field)}
        named = jobs.spec(manifest).priority_class_name
        by_task = {}
        for task, view in zip(jobs.tasks(manifest), found, strict=True):
            spec = view.spec or PodSpec()
            if named and not spec.priority_class_name and spec.priority is None:
                spec = PodSpec(priority_class_name=named, preemption_policy=spec.preemption_policy)
            by_task[task.name] = self.info(spec, manifest, view.spec_field)
        return by_task

    def missing(self, manifest: Manifest) -> list[tuple[str, str]]:
        """The classes that pod templates name and that do not exist, with their fields.

        A server takes such a workload, and refuses its pods until the class is there.
        """
        found = []
        for view in template_views(manifest):
            spec = view.spec or PodSpec()
            name = spec.priority_class_name
            if name and spec.priority is None and self.named(name) is None:
                found.append((f"{view.spec_field}.priorityClassName", name))
        return found

    def task_priorities(self, job: Manifest) -> dict[str, int]:
        """The priorities of a workload's tasks, for the minResources of its PodGroup."""
        return {task: priority for task, (priority, _) in self.infos(job).items()}

    def check(self, name: str | None, manifest: Manifest) -> None:
        """Refuse an object that names a class which does not exist."""
        self.info(PodSpec(priority_class_name=name), manifest, "spec")

    def _class_of(self, spec: PodSpec, manifest: Manifest, field: str) -> PriorityClassWire | None:
        name = spec.priority_class_name or self.default_name()
        if name is None:
            return None
        known = self.named(name)
        if known is None and spec.priority is None and not is_built_in_workload(manifest):
            problem = f"there is no PriorityClass {name}"
            manifest.refuse(f"{field}.priorityClassName", problem)
        return known


def is_built_in_workload(manifest: Manifest) -> bool:
    """Is it a workload of Kubernetes or of a job framework?

    A server takes it with a class that does not exist.
    """
    return isinstance(manifest.content, WorkloadWire | CronJobWire | JobWire)


def check_range(value: int | None, manifest: Manifest, field: str) -> None:
    """Refuse a priority that the API's field cannot hold."""
    lowest = -INT32_MAX - 1
    if value is not None and not lowest <= value <= INT32_MAX:
        problem = f"{value} is not between {lowest} and {INT32_MAX}"
        manifest.refuse(field, problem)
