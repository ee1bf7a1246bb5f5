"""The workloads of a simulation, with their pods; `dialects.workloads` has the rules.

A lost pod is replaced under the next index; a Volcano Job has one index for all its tasks. A pod
that has succeeded counts as done, also one of a Deployment, ReplicaSet or StatefulSet. A pod that
terminates is replaced at once, by a StatefulSet or a Volcano Job once it is gone: on a cluster, its
successor has the same name.
"""

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from aliquot.dialects.claims import stateful_claims
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.pods import PriorityInfo
from aliquot.dialects.daemon_sets import Placement, daemon_pod, node_of
from aliquot.dialects.frameworks.objects import JobWire
from aliquot.dialects.volcano import jobs
from aliquot.dialects.volcano.objects import GangJobWire
from aliquot.dialects.workloads import (
    completion_index,
    in_group,
    indexes,
    job_pod,
    job_wants,
    new_pod,
    replicas,
    role_pod,
    role_wants,
    starts_in_order,
    stateful_pod,
    task_pod,
    templates,
)
from aliquot.json import Body
from aliquot.mirror.pod_record import PodRecord


class CompletionIndexes:
    """The completion indexes of an Indexed Job: those that pods hold, and which comes next.

    Pods come one by one, and there may be very many: so missing indexes are kept in a heap.
    """

    def __init__(self) -> None:
        self._of_pod: dict[str, str] = {}
        """The indexes of pods that wait, run or have succeeded, by uid."""
        self._taken: set[str] = set()
        self._missing: list[int] = []
        """The indexes below `_known` that are missing, and perhaps some that are taken again."""
        self._known = 0

    def take(self, record: PodRecord) -> None:
        """A pod waits, runs or has succeeded: its index, if it has one, is taken."""
        index = completion_index(record.body)
        if index:
            self._of_pod[record.pod.uid] = index
            self._taken.add(index)

    def release(self, uid: str) -> None:
        """A pod is lost: its index is missing."""
        index = self._of_pod.pop(uid, "")
        self._taken.discard(index)
        if index.isdecimal() and int(index) < self._known:
            heapq.heappush(self._missing, int(index))

    def next(self, job: Body) -> int | None:
        """The lowest index that is missing; None if the Job is not Indexed, or has all."""
        count = indexes(job)
        while self._missing:
            index = heapq.heappop(self._missing)
            if index < count and str(index) not in self._taken:
                return index
        while self._known < count:
            self._known += 1
            if str(self._known - 1) not in self._taken:
                return self._known - 1
        return None


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
    indexes: CompletionIndexes = field(default_factory=CompletionIndexes)
    next_index: int = 0
    tasks: dict[str, str] = field(default_factory=dict)
    """The task of each of its pods that wait or run, by uid."""
    running: set[str] = field(default_factory=set)
    """The uids of its pods that run."""
    refused: bool = False
    """Would a server refuse its pods, because their PriorityClass does not exist?"""
    places: dict[str, Placement] = field(default_factory=dict)
    """Of a DaemonSet, by node, whether it has a pod there; its tasks are the nodes."""

    @property
    def is_daemon_set(self) -> bool:
        """Has it a pod on every node? Its tasks are the nodes."""
        return self.manifest.kind == "DaemonSet"

    @property
    def makes_more_later(self) -> bool:
        """May it make further pods because one of its pods runs?"""
        return self.manifest.kind == "StatefulSet" or isinstance(self.manifest.content, JobWire)

    @property
    def wanted(self) -> dict[str, int]:
        """How many pods of each task should wait or run now; those that are there stay."""
        if self.refused:
            return {task: len(of_task) for task, of_task in self.pods.items()}
        if isinstance(self.manifest.content, GangJobWire):
            found = jobs.tasks(self.manifest)
            return {task.name: max(task.replicas - self.done[task.name], 0) for task in found}
        if isinstance(self.manifest.content, JobWire):
            made = role_wants(self.manifest, len(self.running) + self.done.total())
            kept = {task: len(of_task) for task, of_task in self.pods.items()}
            return kept | {task: max(n - self.done[task], 0) for task, n in made.items()}
        if self.manifest.kind == "Job":
            return {"": job_wants(self.manifest.body, self.done[""], len(self.pods.get("", ())))}
        wanted = max(replicas(self.manifest.body) - self.done[""], 0)
        if self.manifest.kind == "StatefulSet" and starts_in_order(self.manifest.body, self.group):
            there = len(self.pods.get("", ()))
            wanted = min(wanted, max(there, len(self.running) + 1))
        return {"": wanted}

    def wanted_on(self, node: str) -> int:
        """How many pods of a DaemonSet a node should have: one, or none."""
        there, place = len(self.pods.get(node, ())), self.places.get(node)
        if self.refused or place is None:
            return there if self.refused else 0
        return int((place.starts or (place.stays and there > 0)) and not self.done[node])

    def task_of(self, named: str) -> str:
        """The task that a pod names; the first task if there is none of that name."""
        return named if named in self.priority_infos else next(iter(self.priority_infos))

    def task(self, record: PodRecord) -> str:
        """The task of one of its pods."""
        if self.is_daemon_set:
            return node_of(record.body)
        if isinstance(self.manifest.content, JobWire):
            return self._task_of_role(record)
        return self.task_of(record.pod.task)

    def _task_of_role(self, record: PodRecord) -> str:
        """The task of a pod of a framework's job, by the role and the group that it names."""
        job = record.group_ref.job
        role, index = (job.role, job.index) if job is not None else ("", 0)
        tasks = role, f"{index}/{role}"
        return next((each for each in tasks if each in self.priority_infos), self.task_of(""))

    def all_pods(self) -> list[str]:
        """The uids of its pods that wait or run."""
        return [uid for of_task in self.pods.values() for uid in of_task]

    @property
    def _replaces_terminating(self) -> bool:
        gang_job = isinstance(self.manifest.content, GangJobWire)
        return not gang_job and self.manifest.kind != "StatefulSet"

    def add(self, record: PodRecord) -> None:
        """Add a pod that waits or runs; one that terminates only while none may replace it."""
        uid = record.pod.uid
        self.remove(uid)
        if record.pod.terminating and self._replaces_terminating:
            return
        task = self.tasks[uid] = self.task(record)
        self.pods.setdefault(task, {})[uid] = None
        self.indexes.take(record)
        if record.phase == "Running":
            self.running.add(uid)

    def end(self, record: PodRecord) -> None:
        """One of its pods has ended; if it has succeeded, it is not replaced."""
        self.remove(record.pod.uid)
        if record.phase == "Succeeded":
            self.done[self.task(record)] += 1
            self.indexes.take(record)

    def remove(self, uid: str) -> None:
        """Remove a pod."""
        self.indexes.release(uid)
        self.running.discard(uid)
        task = self.tasks.pop(uid, None)
        if task is not None:
            self.pods[task].pop(uid, None)

    def template_differs(self, manifest: Manifest) -> bool:
        """Has this manifest another template for any task?"""
        before, after = templates(self.manifest), templates(manifest)
        return any(before[task] != after[task] for task in before if task in after)

    def node_name(self, task: str) -> str | None:
        """The node that a template pins its pods to, if it does."""
        found = templates(self.manifest)
        spec = found[task if task in found else ""].get("spec") or {}
        return spec.get("nodeName") or None

    def new_name(self) -> str:
        """The name of the next pod: `<owner>-<index>`."""
        self.next_index += 1
        return f"{self.manifest.name}-{self.next_index - 1}"

    def claims_of(self, pod: str) -> Iterator[Body]:
        """The claims that are made for a pod of a StatefulSet."""
        if self.manifest.kind == "StatefulSet":
            yield from stateful_claims(self.manifest.body, pod)

    def pod_body(self, name: str, task: str) -> Body:
        """The next pod of a task, as an object."""
        owner, names = self.manifest.body, {"name": name, "namespace": self.manifest.namespace}
        if isinstance(self.manifest.content, GangJobWire):
            return task_pod(self.manifest, task, self.group, **names)
        if isinstance(self.manifest.content, JobWire):
            return role_pod(self.manifest, task, **names)
        if self.manifest.kind == "Job":
            pod = job_pod(owner, self.indexes.next(owner), **names)
        elif self.manifest.kind == "DaemonSet":
            pod = daemon_pod(owner, task, **names)
        elif self.manifest.kind == "StatefulSet":
            ordinal = int(name.rpartition("-")[2])
            pod = stateful_pod(owner, ordinal, templates(self.manifest)[task], **names)
        else:
            pod = new_pod(owner, templates(self.manifest)[task], **names)
        return in_group(pod, self.group) if self.group else pod
