"""The objects of a cluster as they are now, checked and ready to be read together.

A `Change` is what is applied and deleted at one moment.
"""

from dataclasses import dataclass, replace

from aliquot.dialects import cron_jobs
from aliquot.dialects.core import pod_rules, pods
from aliquot.dialects.core.label_selectors import selection
from aliquot.dialects.core.labels import text_map
from aliquot.dialects.core.manifest import Key, Manifest, is_known_kind
from aliquot.dialects.core.objects import (
    MOST_PODS,
    CronJobWire,
    Metadata,
    PodSpec,
    PodStatus,
    PodWire,
    PriorityClassWire,
    WorkloadSpec,
    WorkloadWire,
)
from aliquot.dialects.core.pod_templates import template_views
from aliquot.dialects.core.pods import PriorityInfo
from aliquot.dialects.frameworks import gangs as job_gangs
from aliquot.dialects.frameworks.objects import JobWire
from aliquot.dialects.frameworks.table import BY_KIND
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.dialects.nos.cards import Cards
from aliquot.dialects.priorities import PriorityClasses, check_range
from aliquot.dialects.tensor_fusion import annotations as gpu_annotations
from aliquot.dialects.volcano import gangs, jobs, made_groups
from aliquot.dialects.volcano import keys as volcano
from aliquot.dialects.volcano.objects import GangJobWire, PodGroupWire
from aliquot.engine import Gang
from aliquot.errors import InputError
from aliquot.mirror.group_membership import namespace_queue
from aliquot.mirror.validity import check_by_itself, check_timestamp

_LONGEST_OWNER = 240
"""A pod's name has at most 253 characters; this leaves 13 for the dash and the index."""
_WORKLOADS = (
    *("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"),
    *BY_KIND,
)


@dataclass(frozen=True, slots=True)
class Change:
    """What is applied and deleted at one moment."""

    at: int
    apply: tuple[Manifest, ...] = ()
    delete: tuple[tuple[Key, str], ...] = ()
    """Keys, each with the place that asks for the deletion."""


class Store:
    """Objects by key, and what follows from several of them: priorities and gangs."""

    def __init__(self) -> None:
        self.objects: dict[Key, Manifest] = {}
        self.priorities = PriorityClasses()

    def put(self, manifest: Manifest) -> None:
        """Add or replace an object."""
        self.objects[manifest.key] = manifest
        if isinstance(manifest.content, PriorityClassWire):
            self.priorities.put(manifest.name, manifest.content)

    def delete(self, key: Key, place: str) -> list[Manifest]:
        """Delete an object, and with it a namespace's objects or a node's pods; returns all."""
        kind, namespace, name = key
        gone = [self.objects[key]] if key in self.objects else []
        if kind == "Namespace":
            gone += [each for each in self.objects.values() if each.namespace == name]
        if kind == "Node":
            gone += [each for each in self.objects.values() if _runs_on(each, name)]
        known = (
            gone
            or not is_known_kind(kind)
            or (kind == "Pod" and self._may_be_owned(namespace, name))
        )
        if not known:
            path = f"{namespace}/{name}" if namespace else name
            raise InputError(place, "", f"there is no {kind} {path} to delete")
        for each in gone:
            self.remove(each.key)
        return gone

    def remove(self, key: Key) -> None:
        """Remove one object, if it exists."""
        self.objects.pop(key, None)
        if key[0] == "PriorityClass":
            self.priorities.remove(key[2])

    def check(self, manifest: Manifest) -> None:
        """Read all fields of an object that are ever read, so that an error is raised now."""
        match manifest.content:
            case PodWire(spec=spec, status=status, metadata=metadata):
                self._check_pod(spec, status, manifest, "spec")
                _check_labels(metadata, manifest, "metadata")
                volcano.group_ref(metadata, manifest)
                _check_gpus(metadata, manifest, "metadata")
            case WorkloadWire(spec=spec):
                self._check_workload(spec or WorkloadSpec(), manifest)
                selection(manifest)
            case CronJobWire():
                self._check_cron_job(manifest)
            case GangJobWire():
                self._check_gang_job(manifest)
            case JobWire():
                job_gangs.check(manifest)
                self._check_templates(manifest)
        check_by_itself(manifest)
        if isinstance(manifest.content, PodGroupWire):
            self.priorities.check(gangs.spec(manifest).priority_class_name, manifest)

    def _check_pod(
        self, spec: PodSpec | None, status: PodStatus | None, manifest: Manifest, field: str
    ) -> None:
        pods.shape(spec, status, manifest, Cards(), field)
        pod_rules.check(spec, manifest, field)
        koordinator.quota_named(manifest)
        self.priority(spec, manifest, field)
        check_range(spec.priority if spec is not None else None, manifest, f"{field}.priority")
        self._check_node(spec, status, manifest, field)

    def _check_workload(self, spec: WorkloadSpec, manifest: Manifest) -> None:
        if spec.template is None:
            manifest.refuse("spec.template", "is missing")
        self._check_templates(manifest)
        if made_groups.group_name(manifest) is not None and not manifest.is_refused:
            made_groups.pod_group(manifest)
        for field in ("replicas", "parallelism", "completions"):
            value = getattr(spec, field) or 0
            if not 0 <= value <= MOST_PODS:
                problem = f"{value} is not between 0 and {MOST_PODS}"
                manifest.refuse(f"spec.{field}", problem)

    def _check_cron_job(self, manifest: Manifest) -> None:
        if not template_views(manifest):
            raise manifest.error("spec.jobTemplate.spec.template", "is missing")
        self._check_templates(manifest)
        cron_jobs.check(manifest)

    def _check_gang_job(self, manifest: Manifest) -> None:
        jobs.min_available(manifest)
        jobs.check_policies(manifest)
        self.priorities.check(jobs.spec(manifest).priority_class_name, manifest)
        self._check_templates(manifest)
        if not manifest.is_refused:
            made_groups.pod_group(manifest)
        for view in template_views(manifest):
            _check_group_ref(
                volcano.group_ref(view.metadata, manifest, view.metadata_field), manifest
            )

    def _check_templates(self, manifest: Manifest) -> None:
        """Check the pod templates, and that pods can be named after their workload."""
        for view in template_views(manifest):
            self._check_pod(view.spec, None, manifest, view.spec_field)
            _check_labels(view.metadata, manifest, view.metadata_field)
            check_timestamp(view.metadata, manifest, view.metadata_field)
            volcano.group_ref(view.metadata, manifest, view.metadata_field)
            _check_gpus(view.metadata, manifest, view.metadata_field)
        if len(manifest.name) > _LONGEST_OWNER:
            problem = f"is too long for the names of its pods: {_LONGEST_OWNER} characters at most"
            manifest.refuse("metadata.name", problem)

    def priority(self, spec: PodSpec | None, manifest: Manifest, field: str) -> PriorityInfo:
        """A pod's priority and whether it may preempt: by its spec, its class, else the default."""
        return self.priorities.info(spec, manifest, field)

    def gang(self, manifest: Manifest, created: int = 0, queues: bool = True) -> Gang:
        """A PodGroup as a gang: in its queue or its namespace's, with its class's priority.

        Without `queues` in the cluster, it is in none.
        """
        queue = namespace_queue(manifest.namespace, self.objects)
        read = gangs.gang(manifest, queue, self._gang_priority(manifest), created)
        return read if queues else replace(read, quota=None)

    def _gang_priority(self, manifest: Manifest) -> int | None:
        """The priority of a gang, if its PodGroup names a class that exists."""
        named = self.priorities.named(gangs.spec(manifest).priority_class_name or "")
        return named.value if named is not None else None

    def _check_node(
        self, spec: PodSpec | None, status: PodStatus | None, manifest: Manifest, field: str
    ) -> None:
        """Refuse a running pod whose node does not exist."""
        name = spec.node_name if spec is not None else None
        if name and not pods.finished(status) and ("Node", "", name) not in self.objects:
            manifest.refuse(f"{field}.nodeName", f"there is no node {name}")

    def _may_be_owned(self, namespace: str, name: str) -> bool:
        owner, _, index = name.rpartition("-")
        return index.isdigit() and any(
            (kind, namespace, owner) in self.objects for kind in _WORKLOADS
        )


def _check_group_ref(ref: volcano.GroupRef, manifest: Manifest) -> None:
    """Refuse a template of a Volcano Job that names another gang or queue than the Job's."""
    if ref.gang is not None:
        manifest.refuse(ref.gang_field, "the pods of this Job are in a gang of their own")
    if ref.queue not in (None, jobs.queue(manifest)):
        problem = f"is {ref.queue!r}, but the queue of the Job is {jobs.queue(manifest)!r}"
        manifest.refuse(ref.queue_field, problem)


def _check_labels(metadata: Metadata, manifest: Manifest, field: str) -> None:
    text_map(metadata.labels, manifest, f"{field}.labels")


def _check_gpus(metadata: Metadata, manifest: Manifest, field: str) -> None:
    gpu_annotations.read_request(metadata, manifest, field)
    gpu_annotations.devices(metadata, manifest, field)


def _runs_on(manifest: Manifest, node: str) -> bool:
    content = manifest.content
    return (
        isinstance(content, PodWire) and content.spec is not None and content.spec.node_name == node
    )
