"""The parts of Kubernetes' own objects that matter here, as they stand in JSON.

Each dialect has its own objects beside these, in the `objects` of its folder. Every field is
optional, as in the API's own types; a field that must be there is checked where it is used, so that
the message can say what it is for. Fields that are not named here are not read.
"""

from functools import lru_cache
from typing import Any

import msgspec

INT32_MAX = 2**31 - 1
"""The largest number in most of the API's fields, which are an int32."""
MOST_PODS = 100_000
"""The most pods of one workload: twice the pods that the engine is measured with, so that a wrong
number does not fill the memory."""
_MOST_IMAGES = 65_536
"""Images that nodes share: far more than clusters have at a time. Each node reports some fifty."""

Quantities = dict[str, Any]
"""Quantities by resource, each checked where it is read, so that a message names the resource."""


class Wire(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    """A JSON object with camelCase keys. JSON has no cycles, so the garbage collector skips it.

    Encoded, it has what is read of an object, and nothing else: so snapshots are made.
    """


class OwnerReference(Wire):
    """The object that owns this one, and whether it controls it."""

    kind: str = ""
    name: str = ""
    uid: str | None = None
    controller: bool | None = None


class Metadata(Wire):
    """The metadata of an object."""

    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: dict[str, Any] | None = None
    annotations: dict[str, Any] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    owner_references: list[OwnerReference] | None = None


class ResourceRequirements(Wire):
    """Requests and limits of a container, or of a pod as a whole."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class ContainerPort(Wire):
    """A port of a container, and the port of its node that leads to it."""

    container_port: int = 0
    host_port: int | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")
    protocol: str | None = None


class Container(Wire):
    """A container; restartPolicy Always makes an init container a sidecar."""

    name: str = ""
    image: str | None = None
    resources: ResourceRequirements | None = None
    ports: list[ContainerPort] | None = None
    restart_policy: str | None = None
    image_pull_policy: str | None = None


class SelectorRequirement(Wire):
    """One requirement of a selector."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(Wire):
    """A selector of objects by their labels."""

    match_labels: dict[str, Any] | None = None
    match_expressions: list[SelectorRequirement] | None = None


class SelectorTerm(Wire):
    """Requirements that must all hold."""

    match_expressions: list[SelectorRequirement] | None = None
    match_fields: list[SelectorRequirement] | None = None


class RequiredTerms(Wire):
    """Terms of which one must hold."""

    node_selector_terms: list[SelectorTerm] | None = None


class PreferredTerm(Wire):
    """A term that should hold, and its weight."""

    weight: int = 0
    preference: SelectorTerm | None = None


class NodeAffinity(Wire):
    """The nodes that a pod requires and prefers."""

    required_during_scheduling_ignored_during_execution: RequiredTerms | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredTerm] | None = None


class PodAffinityTerm(Wire):
    """Pods, and the node label by whose values a pod is to be near them, or far from them."""

    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None
    topology_key: str = ""


class WeightedPodAffinityTerm(Wire):
    """Pods that a pod should be near, or far from, and the weight of that."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm | None = None


class PodAffinity(Wire):
    """The pods that a pod requires and prefers near it; in an anti-affinity, far from it."""

    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] | None = (
        None
    )


class Affinity(Wire):
    """Affinity to nodes, and to and against other pods."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Wire):
    """How evenly pods are to be spread over the values of a node label."""

    max_skew: int = 0
    min_domains: int | None = None
    topology_key: str = ""
    when_unsatisfiable: str = ""
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None


class TolerationWire(Wire):
    """A taint that a pod tolerates."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class ClaimSource(Wire):
    """The claim that a volume of a pod mounts."""

    claim_name: str = ""


class DiskSource(Wire):
    """A disk of a pod or a PersistentVolume: its names in all the plugins that are read."""

    pd_name: str = ""
    volume_id: str = msgspec.field(default="", name="volumeID")
    iqn: str = ""
    monitors: list[str] | None = None
    pool: str | None = None
    image: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")
    kind: str | None = None
    driver: str = ""
    volume_handle: str = ""
    read_only: bool | None = None


class PodVolume(Wire):
    """A volume of a pod: a claim, one that is made for it, or a disk."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: dict[str, Any] | None = None
    gce_persistent_disk: DiskSource | None = None
    aws_elastic_block_store: DiskSource | None = None
    azure_disk: DiskSource | None = None
    cinder: DiskSource | None = None
    portworx_volume: DiskSource | None = None
    iscsi: DiskSource | None = None
    rbd: DiskSource | None = None


class PodSpec(Wire):
    """What a pod requests and where it may run."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    resources: ResourceRequirements | None = None
    overhead: Quantities | None = None
    node_name: str | None = None
    scheduler_name: str | None = None
    node_selector: dict[str, Any] | None = None
    affinity: Affinity | None = None
    tolerations: list[TolerationWire] | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    scheduling_gates: list[dict[str, Any]] | None = None
    resource_claims: list[dict[str, Any]] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    host_network: bool | None = None
    volumes: list[PodVolume] | None = None
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int | None = None


class Condition(Wire):
    """A condition in a status."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class ContainerStatus(Wire):
    """What is allocated to a container, which differs from its spec during a resize."""

    name: str = ""
    allocated_resources: Quantities | None = None
    resources: ResourceRequirements | None = None


class PodStatus(Wire):
    """The status of a pod."""

    phase: str | None = None
    start_time: str | None = None
    nominated_node_name: str | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    conditions: list[Condition] | None = None


class PodWire(Wire):
    """A pod."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: PodSpec | None = None
    status: PodStatus | None = None


class PodTemplate(Wire):
    """The template of a workload's pods."""

    metadata: Metadata | None = None
    spec: PodSpec | None = None


class SelectionSpec(Wire):
    """What is read of a spec that selects pods: labels, or a LabelSelector, by kind."""

    selector: dict[str, Any] | None = None


class SelectionWire(Wire):
    """A Service, or a workload of which only the pods that it selects matter."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: SelectionSpec | None = None


class WorkloadSpec(Wire):
    """The spec of a Deployment, ReplicaSet, StatefulSet, DaemonSet or Job."""

    selector: dict[str, Any] | None = None
    """Labels for a ReplicationController, a LabelSelector for the others."""
    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    suspend: bool | None = None
    template: PodTemplate | None = None


class WorkloadWire(Wire):
    """A Deployment, ReplicaSet, StatefulSet, DaemonSet or Job."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: WorkloadSpec | None = None


class JobTemplate(Wire):
    """The template of a CronJob's Jobs."""

    metadata: Metadata | None = None
    spec: WorkloadSpec | None = None


class CronJobSpec(Wire):
    """The spec of a CronJob."""

    schedule: str = ""
    time_zone: str | None = None
    suspend: bool | None = None
    concurrency_policy: str | None = None
    starting_deadline_seconds: int | None = None
    job_template: JobTemplate | None = None


class CronJobWire(Wire):
    """A CronJob."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: CronJobSpec | None = None


class TaintWire(Wire):
    """A taint of a node."""

    key: str = ""
    value: str | None = None
    effect: str = ""


class NodeSpec(Wire):
    """The spec of a node."""

    unschedulable: bool | None = None
    taints: list[TaintWire] | None = None


class ContainerImage(Wire):
    """An image that a node has, by all its names."""

    names: tuple[str, ...] | None = None
    size_bytes: int | None = None


@lru_cache(_MOST_IMAGES)
def _shared_image(names: tuple[str, ...] | None, size_bytes: int | None) -> ContainerImage:
    return ContainerImage(names, size_bytes)


class NodeStatus(Wire):
    """The capacity, conditions and images of a node; nodes share what they have of one image."""

    allocatable: Quantities | None = None
    capacity: Quantities | None = None
    conditions: list[Condition] | None = None
    images: list[ContainerImage] | None = None

    def __post_init__(self) -> None:
        if self.images:
            self.images = [_shared_image(each.names, each.size_bytes) for each in self.images]


class NodeWire(Wire):
    """A node."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class PriorityClassWire(Wire):
    """A PriorityClass."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    value: int | None = None
    global_default: bool | None = None
    preemption_policy: str | None = None


class ResourceQuotaSpec(Wire):
    """The spec of a core ResourceQuota."""

    hard: Quantities | None = None


class ResourceQuotaWire(Wire):
    """A core ResourceQuota."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: ResourceQuotaSpec | None = None


class BudgetSpec(Wire):
    """The spec of a PodDisruptionBudget."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class BudgetStatus(Wire):
    """The status of a PodDisruptionBudget, written by the disruption controller."""

    disruptions_allowed: int | None = None
    disrupted_pods: dict[str, Any] | None = None


class BudgetWire(Wire):
    """A PodDisruptionBudget."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: BudgetSpec | None = None
    status: BudgetStatus | None = None


class PlainWire(Wire):
    """An object of which only the metadata are read."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)


class Deletion(Wire, forbid_unknown_fields=True):
    """An object that a timeline deletes."""

    kind: str
    name: str
    namespace: str | None = None


class Step(Wire, forbid_unknown_fields=True):
    """The changes of a timeline at one moment."""

    at: str | int | float
    apply: list[dict[str, Any]] | None = None
    delete: list[Deletion] | None = None


class TimelineWire(Wire, forbid_unknown_fields=True):
    """Changes to the objects over time."""

    api_version: str
    kind: str
    steps: list[Step]
    metadata: Metadata = msgspec.field(default_factory=Metadata)
