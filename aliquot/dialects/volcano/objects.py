"""Volcano's objects as they stand in JSON: Queue, PodGroup, Job and HyperNode.

A PodGroup of the scheduler plugins (KEP-9's groups) is read as one of these: its fields are among
Volcano's, but for `scheduleTimeoutSeconds`.
"""

from typing import Any, Literal

import msgspec

from aliquot.dialects.core.objects import LabelSelector, Metadata, PodTemplate, Quantities, Wire


class Guarantee(Wire):
    """What a queue is guaranteed."""

    resource: Quantities | None = None


class QueueSpec(Wire):
    """The spec of a Volcano Queue."""

    weight: int | None = None
    capability: Quantities | None = None
    guarantee: Guarantee | None = None
    deserved: Quantities | None = None
    reclaimable: bool | None = None
    priority: int | None = None
    parent: str | None = None
    dequeue_strategy: str | None = None
    affinity: Any = None
    extend_clusters: Any = None


class QueueStatus(Wire):
    """Whether a queue is open to pods."""

    state: str | None = None


class QueueWire(Wire):
    """A Volcano Queue."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: QueueSpec | None = None
    status: QueueStatus | None = None


class NetworkTopologyWire(Wire):
    """How near to each other the pods of a gang run: within a HyperNode up to a tier."""

    mode: Literal["hard", "soft"] | None = None
    highest_tier_allowed: int | None = None
    highest_tier_name: str | None = None


class PodGroupSpec(Wire):
    """The spec of a PodGroup, of Volcano or of the scheduler plugins."""

    min_member: int | None = None
    min_task_member: dict[str, int] | None = None
    min_resources: Quantities | None = None
    queue: str | None = None
    priority_class_name: str | None = None
    schedule_timeout_seconds: int | None = None
    network_topology: NetworkTopologyWire | None = None
    sub_group_policy: Any = None


class PodGroupWire(Wire):
    """A PodGroup: pods that start together."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: PodGroupSpec | None = None


class PolicyWire(Wire):
    """What to do on an event of a pod, or when one ends with an exit code."""

    action: str | None = None
    event: str | None = None
    events: list[str] | None = None
    exit_code: int | None = None
    timeout: str | None = None


class TaskWire(Wire):
    """One task of a Volcano Job: a number of identical pods."""

    name: str | None = None
    replicas: int | None = None
    min_available: int | None = None
    template: PodTemplate | None = None
    depends_on: Any = None
    policies: list[PolicyWire] | None = None
    topology_policy: str | None = None
    partition_policy: Any = None


class GangJobSpec(Wire):
    """The spec of a Volcano Job."""

    min_available: int | None = None
    tasks: list[TaskWire] | None = None
    queue: str | None = None
    priority_class_name: str | None = None
    policies: list[PolicyWire] | None = None
    network_topology: NetworkTopologyWire | None = None


class GangJobWire(Wire):
    """A Volcano Job: tasks whose pods make one gang."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: GangJobSpec | None = None


class ExactMatch(Wire):
    """The one object of this name."""

    name: str = ""


class RegexMatch(Wire):
    """The objects whose names match."""

    pattern: str | None = None


class MemberSelector(Wire):
    """Which objects are members: exactly one of these."""

    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelector | None = None


class MemberWire(Wire):
    """Members of a HyperNode: nodes, or HyperNodes of lower tiers."""

    type: str | None = None
    selector: MemberSelector | None = None


class HyperNodeSpec(Wire):
    """The spec of a HyperNode."""

    tier: int | None = None
    tier_name: str | None = None
    members: list[MemberWire] | None = None


class HyperNodeWire(Wire):
    """A HyperNode: nodes that are near each other."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: HyperNodeSpec | None = None
