"""Workloads: how many pods an owner wants now, and what the next one is called.

Deployments, ReplicaSets, StatefulSets and Jobs all come down to this: so many pods in all, so many
at once, and a lost one is replaced under the next index. A pod that has ended counts as done. Jobs
of Volcano want that for each of their tasks, and number their pods over all of them.
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
    """An owner of pods, and where it stands. One without tasks has a single one without a name."""

    manifest: Manifest
    priority_infos: dict[str, PriorityInfo]
    """How its pods behave, by task."""
    applied: int
    group: str = ""
    """The name of the group that its pods are in."""
    pods: dict[str, dict[str, None]] = field(default_factory=dict)
    """The uids of its pods that are still there, by task."""
    done: Counter[str] = field(default_factory=Counter)
    """How many have ended, by task."""
    next_index: int = 0

    @property
    def wanted(self) -> dict[str, int]:
        """How many pods of each task should be there now."""
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

    def task_of(self, said: str) -> str:
        """The task of a pod that says this; the first where there is none of that name."""
        return said if said in self.priority_infos else next(iter(self.priority_infos))

    def all_pods(self) -> list[str]:
        """The uids of its pods that are still there."""
        return [uid for of_task in self.pods.values() for uid in of_task]

    def add(self, uid: str, said: str) -> None:
        """A pod is there that says it is of this task."""
        self.remove(uid)
        self.pods.setdefault(self.task_of(said), {})[uid] = None

    def remove(self, uid: str) -> None:
        """A pod is no longer there."""
        for of_task in self.pods.values():
            of_task.pop(uid, None)

    def differs(self, manifest: Manifest) -> bool:
        """Would pods of this manifest look different?"""
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
