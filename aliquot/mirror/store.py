"""The objects of the embedded cluster, as they stand now."""

from dataclasses import dataclass, replace

from aliquot.dialects.core import budgets, nodes, pods, simulation_annotations
from aliquot.dialects.core.labels import text_map
from aliquot.dialects.core.manifest import Key, Manifest, is_known_kind
from aliquot.dialects.core.objects import (
    BudgetWire,
    Metadata,
    NodeWire,
    PlainWire,
    PodSpec,
    PodStatus,
    PodWire,
    PriorityClassWire,
    ResourceQuotaWire,
    WorkloadSpec,
    WorkloadWire,
)
from aliquot.dialects.core.pod_templates import template_views
from aliquot.dialects.core.pods import PriorityInfo
from aliquot.dialects.core.times import timestamp
from aliquot.dialects.kep9 import quotas
from aliquot.dialects.kep9.objects import QuotaWire
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.dialects.nos.cards import Cards
from aliquot.dialects.nos.objects import CompositeQuotaWire
from aliquot.dialects.tensor_fusion import annotations as gpu_annotations
from aliquot.dialects.tensor_fusion import gpus
from aliquot.dialects.tensor_fusion import quotas as gpu_quotas
from aliquot.dialects.tensor_fusion.objects import GpuQuotaWire, GpuWire
from aliquot.dialects.volcano import gangs, jobs, made_groups, queues
from aliquot.dialects.volcano import keys as volcano
from aliquot.dialects.volcano.objects import GangJobWire, PodGroupWire, QueueWire
from aliquot.engine import Gang
from aliquot.errors import InputError
from aliquot.mirror.group_membership import namespace_queue

_BUILT_IN = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_MOST_PODS = 100_000
_LONGEST_OWNER = 240
_PRIORITIES = 2**31
_WORKLOADS = ("Deployment", "ReplicaSet", "StatefulSet", "Job")


class Store:
    """Objects by key, and the questions they answer together."""

    def __init__(self) -> None:
        self.objects: dict[Key, Manifest] = {}
        self._classes: dict[str, PriorityClassWire] = {}

    def put(self, manifest: Manifest) -> None:
        """Add or replace an object."""
        self.objects[manifest.key] = manifest
        if isinstance(manifest.content, PriorityClassWire):
            self._classes[manifest.name] = manifest.content

    def delete(self, key: Key, place: str) -> list[Manifest]:
        """Take an object away, and all that goes with it: a namespace's objects, a node's pods."""
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
        """Take one object away."""
        self.objects.pop(key, None)
        if key[0] == "PriorityClass":
            self._classes.pop(key[2], None)

    def check(self, manifest: Manifest) -> None:
        """Read an object to the end, so that whatever is wrong with it comes out now."""
        match manifest.content:
            case PodWire(spec=spec, status=status, metadata=metadata):
                self._check_pod(spec, status, manifest, "spec")
                _check_labels(metadata, manifest, "metadata")
                volcano.group_ref(metadata, manifest)
                _check_gpus(metadata, manifest, "metadata")
            case WorkloadWire(spec=spec):
                self._check_workload(spec or WorkloadSpec(), manifest)
            case GangJobWire():
                self._check_gang_job(manifest)
            case QueueWire():
                queues.queue(manifest)
            case PodGroupWire():
                gangs.gang(manifest)
                self._check_class(gangs.spec(manifest).priority_class_name, manifest)
            case PriorityClassWire(value=None):
                raise manifest.error("value", "is missing")
            case PriorityClassWire(value=value):
                _check_priority(value, manifest, "value")
            case BudgetWire():
                budgets.budget(manifest)
            case NodeWire():
                nodes.node(manifest, Cards())
            case QuotaWire() | CompositeQuotaWire():
                quotas.quota(manifest)
            case ResourceQuotaWire():
                quotas.hard(manifest)
            case GpuQuotaWire():
                gpu_quotas.quota(manifest)
            case GpuWire():
                gpus.device(manifest)
            case PlainWire():
                volcano.queue_named(manifest.metadata, manifest)
        _check_timestamp(manifest.metadata, manifest, "metadata")
        simulation_annotations.duration_of(manifest)

    def _check_pod(
        self, spec: PodSpec | None, status: PodStatus | None, manifest: Manifest, field: str
    ) -> None:
        pods.shape(spec, status, manifest, Cards(), field)
        koordinator.quota_named(manifest)
        self.priority(spec, manifest, field)
        _check_priority(spec.priority if spec is not None else None, manifest, f"{field}.priority")
        self._check_node(spec, status, manifest, field)

    def _check_workload(self, spec: WorkloadSpec, manifest: Manifest) -> None:
        if spec.template is None:
            raise manifest.error("spec.template", "is missing")
        self._check_templates(manifest)
        if made_groups.group_name(manifest) is not None:
            made_groups.pod_group(manifest)
        for field in ("replicas", "parallelism", "completions"):
            value = getattr(spec, field) or 0
            if not 0 <= value <= _MOST_PODS:
                problem = f"{value} is not between 0 and {_MOST_PODS}"
                raise manifest.error(f"spec.{field}", problem)

    def _check_gang_job(self, manifest: Manifest) -> None:
        jobs.min_available(manifest)
        self._check_class(jobs.spec(manifest).priority_class_name, manifest)
        self._check_templates(manifest)
        made_groups.pod_group(manifest)
        for view in template_views(manifest):
            _check_ties(volcano.group_ref(view.metadata, manifest, view.metadata_field), manifest)

    def _check_templates(self, manifest: Manifest) -> None:
        """What pods will look like, and whether they can be named after their owner."""
        for view in template_views(manifest):
            self._check_pod(view.spec, None, manifest, view.spec_field)
            _check_labels(view.metadata, manifest, view.metadata_field)
            _check_timestamp(view.metadata, manifest, view.metadata_field)
            volcano.group_ref(view.metadata, manifest, view.metadata_field)
            _check_gpus(view.metadata, manifest, view.metadata_field)
        if len(manifest.name) > _LONGEST_OWNER:
            problem = f"is too long for the names of its pods: {_LONGEST_OWNER} characters at most"
            raise manifest.error("metadata.name", problem)

    def priority(self, spec: PodSpec | None, manifest: Manifest, field: str) -> tuple[int, bool]:
        """A pod's priority, and whether it may preempt: its own word, its class's, the default."""
        spec = spec or PodSpec()
        named = self._class_of(spec, manifest, field)
        value = named.value if named is not None else 0
        policy = spec.preemption_policy or (named.preemption_policy if named is not None else None)
        return spec.priority if spec.priority is not None else value or 0, policy != "Never"

    def gang(self, manifest: Manifest, created: int = 0, queues: bool = True) -> Gang:
        """A group of pods: in its queue, or that of its namespace; with the value of its class.

        Without `queues`, there are none that it could be in.
        """
        queue = namespace_queue(manifest.namespace, self.objects)
        read = gangs.gang(manifest, queue, self._gang_priority(manifest), created)
        return read if queues else replace(read, quota=None)

    def _gang_priority(self, manifest: Manifest) -> int | None:
        """The priority of a whole gang, if it names a class that is there."""
        named = self._class(gangs.spec(manifest).priority_class_name or "")
        return named.value if named is not None else None

    def _check_node(
        self, spec: PodSpec | None, status: PodStatus | None, manifest: Manifest, field: str
    ) -> None:
        """A pod can only run on a node that is there."""
        name = spec.node_name if spec is not None else None
        if name and not pods.finished(status) and ("Node", "", name) not in self.objects:
            raise manifest.error(f"{field}.nodeName", f"there is no node {name}")

    def _class_of(self, spec: PodSpec, manifest: Manifest, field: str) -> PriorityClassWire | None:
        name = spec.priority_class_name
        if not name:
            defaults = [each for each in self._classes.values() if each.global_default]
            return max(defaults, key=lambda each: each.value or 0, default=None)
        known = self._class(name)
        if known is None and spec.priority is None:
            problem = f"there is no PriorityClass {name}"
            raise manifest.error(f"{field}.priorityClassName", problem)
        return known

    def _class(self, name: str) -> PriorityClassWire | None:
        if name in _BUILT_IN and name not in self._classes:
            return PriorityClassWire(value=_BUILT_IN[name])
        return self._classes.get(name)

    def _check_class(self, name: str | None, manifest: Manifest) -> None:
        self.priority(PodSpec(priority_class_name=name), manifest, "spec")

    def _may_be_owned(self, namespace: str, name: str) -> bool:
        owner, _, index = name.rpartition("-")
        return index.isdigit() and any(
            (kind, namespace, owner) in self.objects for kind in _WORKLOADS
        )


def _check_priority(value: int | None, manifest: Manifest, field: str) -> None:
    if value is not None and not -_PRIORITIES <= value < _PRIORITIES:
        problem = f"{value} is not between {-_PRIORITIES} and {_PRIORITIES - 1}"
        raise manifest.error(field, problem)


def _check_ties(said: volcano.GroupRef, manifest: Manifest) -> None:
    """The pods of a Volcano Job are in its gang and in its queue, and in no other."""
    if said.gang is not None:
        raise manifest.error(said.gang_field, "the pods of this Job are in a gang of their own")
    if said.queue not in (None, jobs.queue(manifest)):
        problem = f"is {said.queue!r}, but the queue of the Job is {jobs.queue(manifest)!r}"
        raise manifest.error(said.queue_field, problem)


def _check_labels(metadata: Metadata, manifest: Manifest, field: str) -> None:
    text_map(metadata.labels, manifest, f"{field}.labels")


def _check_gpus(metadata: Metadata, manifest: Manifest, field: str) -> None:
    gpu_annotations.read_request(metadata, manifest, field)
    gpu_annotations.devices(metadata, manifest, field)


def _check_timestamp(metadata: Metadata, manifest: Manifest, field: str) -> None:
    place = f"{manifest.place}: {manifest.title}"
    timestamp(metadata.creation_timestamp, place, f"{field}.creationTimestamp")


def _runs_on(manifest: Manifest, node: str) -> bool:
    content = manifest.content
    return (
        isinstance(content, PodWire) and content.spec is not None and content.spec.node_name == node
    )


@dataclass(frozen=True, slots=True)
class Change:
    """What is applied and deleted at one moment."""

    at: int
    apply: tuple[Manifest, ...] = ()
    delete: tuple[tuple[Key, str], ...] = ()
    """Keys, each with the place that asks for it."""


def priority_infos(manifest: Manifest, store: Store) -> dict[str, PriorityInfo]:
    """Those of the pods of each task; a Job's class is that of all its tasks.

    An owner without tasks has a single one without a name.
    """
    found = template_views(manifest)
    if not isinstance(manifest.content, GangJobWire):
        (view,) = found
        return {"": store.priority(view.spec, manifest, view.spec_field)}
    named = jobs.spec(manifest).priority_class_name
    by_task = {}
    for task, view in zip(jobs.tasks(manifest), found, strict=True):
        spec = view.spec or PodSpec()
        if named and not spec.priority_class_name and spec.priority is None:
            spec = PodSpec(priority_class_name=named, preemption_policy=spec.preemption_policy)
        by_task[task.name] = store.priority(spec, manifest, view.spec_field)
    return by_task
