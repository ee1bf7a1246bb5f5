"""Workloads: how many pods an owner wants now, and the name and body of its next pod.

Deployments, ReplicaSets, StatefulSets and Jobs are treated alike: a number of pods in all, a number
at once, and a lost pod is replaced under the next index. A pod that has succeeded counts as done. A
Volcano Job has these numbers for each task, and one index for all of them.
"""

from collections import Counter
from dataclasses import dataclass, field

from aliquot.dialects.core.manifest import Manifest, owner_reference
from aliquot.dialects.core.objects import WorkloadSpec, WorkloadWire
from aliquot.dialects.core.pods import PriorityInfo
from aliquot.dialects.volcano import jobs
from aliquot.dialects.volcano.job_pods import in_group, in_job, templates
from aliquot.dialects.volcano.objects import GangJobWire
from aliquot.json import Body


@dataclass(slots=True)
class Workload:
    """A workload and its pods, by task; a workload without tasks has one with the name ""."""

    manifest: Manifest
    priority_infos: dict[str, PriorityInfo]
    """The priority of its pods, and whether they may preempt, by task."""
    applied: int
    group: str = ""
    """The name of its pods' PodGroup; empty if there is none."""
    pods: dict[str, dict[str, None]] = field(default_factory=dict)
    """The uids of its pods that wait or run, by task."""
    done: Counter[str] = field(default_factory=Counter)
    """How many pods have succeeded, by task."""
    next_index: int = 0

    @property
    def wanted(self) -> dict[str, int]:
        """How many pods of each task should wait or run now."""
        if isinstance(self.manifest.content, GangJobWire):
            found = jobs.tasks(self.manifest)
            return {task.name: max(task.replicas - self.done[task.name], 0) for task in found}
        return {"": self._wanted_of_all()}

    def _wanted_of_all(self) -> int:
        assert isinstance(self.manifest.content, WorkloadWire)
        spec, done = self.manifest.content.spec or WorkloadSpec(), self.done[""]
        if self.manifest.kind != "Job":
            replicas = 1 if spec.replicas is None else spec.replicas
            return max(replicas - done, 0)
        if spec.suspend:
            return 0
        at_once = 1 if spec.parallelism is None else spec.parallelism
        in_all = at_once if spec.completions is None else spec.completions
        return max(min(at_once, in_all - done), 0)

    def task_of(self, named: str) -> str:
        """The task that a pod names; the first task if there is none of that name."""
        return named if named in self.priority_infos else next(iter(self.priority_infos))

    def all_pods(self) -> list[str]:
        """The uids of its pods that wait or run."""
        return [uid for of_task in self.pods.values() for uid in of_task]

    def add(self, uid: str, named: str) -> None:
        """Add a pod that names this task."""
        self.remove(uid)
        self.pods.setdefault(self.task_of(named), {})[uid] = None

    def remove(self, uid: str) -> None:
        """Remove a pod."""
        for of_task in self.pods.values():
            of_task.pop(uid, None)

    def template_differs(self, manifest: Manifest) -> bool:
        """Has this manifest another template for any task?"""
        before, after = templates(self.manifest), templates(manifest)
        return any(before[task] != after[task] for task in before if task in after)

    def node_name(self, task: str) -> str | None:
        """The node that a template pins its pods to, if it does."""
        spec = templates(self.manifest)[task].get("spec") or {}
        return spec.get("nodeName") or None

    def new_name(self) -> str:
        """The name of the next pod: `<owner>-<index>`."""
        self.next_index += 1
        return f"{self.manifest.name}-{self.next_index - 1}"

    def pod_body(self, name: str, task: str) -> Body:
        """The next pod of a task, as an object."""
        template = templates(self.manifest)[task]
        metadata = {
            **(template.get("metadata") or {}),
            "name": name,
            "namespace": self.manifest.namespace,
            "ownerReferences": [owner_reference(self.manifest)],
        }
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        if not self.group:
            return body
        if isinstance(self.manifest.content, GangJobWire):
            return in_job(body, self.manifest, task, self.group)
        return in_group(body, self.group)
