"""The configuration file: read, checked to the last key, and converted to the engine's knobs.

An unknown key or a bad value is refused with its path; nothing falls back to a default in silence.
"""

from typing import Literal, get_args, get_origin

import msgspec
from msgspec import structs

from aliquot.dialects.core import pod_rules
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import check_namespace, convert
from aliquot.dialects.core.objects import TopologySpreadConstraint, Wire
from aliquot.dialects.core.times import duration
from aliquot.dialects.schemas.names import label_key, label_value
from aliquot.engine import (
    SECOND,
    CapacityKnobs,
    DefaultConstraint,
    EvictionKnobs,
    FairKnobs,
    GpuKnobs,
    HierarchyKnobs,
    Knobs,
    PlacementKnobs,
    PlacementWeights,
    QueuesKnobs,
    SystemNamespaces,
)
from aliquot.errors import InputError
from aliquot.json import Body

API_VERSION = "config.aliquot.dev/v1alpha1"
POLICIES = ("auto", "capacity", "fair", "hierarchy", "queues")

SCHEDULER_NAMES = (
    *("aliquot", "capacityscheduler", "nos-scheduler"),
    *("koord-scheduler", "tensor-fusion-scheduler", "volcano"),
)
"""Our own `schedulerName`, and those that pods of each design carry."""

PolicyName = Literal["auto", "capacity", "fair", "hierarchy", "queues"]
Borrow = Literal["unusedMin", "freeCapacity"]
_HIGHEST_WEIGHT = 100
_REQUIRED = "DoNotSchedule"
_ORDER_WORDS = {"creation", "request", "name", "priority"}


class Section(Wire, forbid_unknown_fields=True, omit_defaults=False):
    """A section of the file; a key that is not known is refused. Encoded, it states defaults."""


class Profile(Section):
    """A scheduler name, and the policy of its pods."""

    scheduler_name: str
    policy: PolicyName = "auto"


class Capacity(Section):
    """Knobs of the `capacity` policy."""

    borrow: Borrow = "unusedMin"


class Fair(Section):
    """Knobs of the `fair` policy."""

    borrow: Borrow = "unusedMin"
    over_quota_order: list[str] = msgspec.field(
        default_factory=lambda: ["creation", "request", "name"]
    )


class Hierarchy(Section):
    """Knobs of the `hierarchy` policy."""

    revoke_after: str | int | float = "120s"
    recycle: Literal["demand", "always"] = "demand"
    scale_min: bool = True
    surplus: bool = True
    parent_pods: Literal["refuse", "implicitChild"] = "refuse"


class Queues(Section):
    """Knobs of the `queues` policy."""

    priority_bands: bool = False


class Gpu(Section):
    """The memory of GPUs, and how pods that share them are placed."""

    memory_gb: int = msgspec.field(default=32, name="memoryGB")
    memory_gb_by_model: dict[str, int] = msgspec.field(default_factory=dict, name="memoryGBByModel")
    placement: Literal[
        "CompactFirst", "LowLoadFirst", "NodeCompactGPULowLoad", "leastFragmentation"
    ] = "NodeCompactGPULowLoad"
    models: dict[str, list[str]] = msgspec.field(default_factory=dict)


class Eviction(Section):
    """Which pods are not evicted, and how long a nomination holds what an eviction frees."""

    min_runtime: str | int | float = "0s"
    quotaless: Literal["protected", "lowest"] = "protected"
    on_quota_lowered: Literal["keep", "evict"] = "keep"
    hold_for: str | int | float = "5m"
    node_lost_after: str | int | float = "5m"
    max_per_minute: int = 0
    max_share: int = 0
    delete_after: str | int | float = "1m"
    max_grace: str | int | float = "1h"
    patience: str | int | float = "0s"


class Weights(Section):
    """How much each preference counts beside the others."""

    pod_affinity: int = 2
    topology_spread: int = 2
    node_affinity: int = 2
    taints: int = 3
    image_locality: int = 1


class Constraint(Section):
    """Topology spread of pods that state none; which pods it counts is not written, but found."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""


class Placement(Section):
    """How nodes are scored, and when room is reserved for a claim that others keep passing."""

    score: Literal["pack", "spread"] = "pack"
    reserve_after: str | int | float = "60s"
    reserve_share: int = 10
    volume_bind_timeout: str | int | float = "10m"
    weights: Weights = msgspec.field(default_factory=Weights)
    default_constraints: list[Constraint] = msgspec.field(default_factory=list)


def _default_profiles() -> list[Profile]:
    return [Profile(scheduler_name=name) for name in SCHEDULER_NAMES]


class Configuration(Section):
    """The whole file."""

    api_version: str = API_VERSION
    kind: str = "Configuration"
    profiles: list[Profile] = msgspec.field(default_factory=_default_profiles)
    capacity: Capacity = msgspec.field(default_factory=Capacity)
    fair: Fair = msgspec.field(default_factory=Fair)
    hierarchy: Hierarchy = msgspec.field(default_factory=Hierarchy)
    queues: Queues = msgspec.field(default_factory=Queues)
    gpu: Gpu = msgspec.field(default_factory=Gpu)
    eviction: Eviction = msgspec.field(default_factory=Eviction)
    placement: Placement = msgspec.field(default_factory=Placement)
    system_namespaces: list[str] = msgspec.field(default_factory=list)
    topology: list[str] = msgspec.field(default_factory=list)


def read(document: Document) -> Configuration:
    """Read and check a configuration."""
    place = document.place
    _check_choices(document.body, place)
    configuration = convert(document.body, Configuration, place)
    for field, have, want in (
        ("apiVersion", configuration.api_version, API_VERSION),
        ("kind", configuration.kind, "Configuration"),
    ):
        if have != want:
            raise InputError(place, field, f"is {have!r}, must be {want!r}")
    for word in configuration.fair.over_quota_order:
        if word.removeprefix("-") not in _ORDER_WORDS:
            known = ", ".join(sorted(_ORDER_WORDS))
            raise InputError(place, "fair.overQuotaOrder", f"{word!r} is none of {known}")
    for field, gigabytes in (
        ("gpu.memoryGB", configuration.gpu.memory_gb),
        *((f"gpu.memoryGBByModel.{k}", v) for k, v in configuration.gpu.memory_gb_by_model.items()),
    ):
        if gigabytes < 1:
            raise InputError(place, field, f"is {gigabytes}, must be at least 1")
    _check_models(configuration.gpu.models, place)
    share = configuration.placement.reserve_share
    if not 0 <= share <= 100:
        field = "placement.reserveShare"
        raise InputError(place, field, f"is {share}, must be a percentage from 0 to 100")
    _check_weights(configuration.placement.weights, place)
    _check_constraints(configuration.placement.default_constraints, place)
    for index, name in enumerate(configuration.system_namespaces):
        check_namespace(name, place, f"systemNamespaces[{index}]")
    _check_topology(configuration.topology, place)
    _check_brakes(configuration.eviction, place)
    if knobs(configuration, place).eviction.max_grace < SECOND:
        problem = "must be at least 1s: without a grace period no kubelet stops the pod"
        raise InputError(place, "eviction.maxGrace", problem)
    return configuration


def system_namespaces(configuration: Configuration) -> SystemNamespaces:
    """The namespaces whose pods keep the cluster going, `kube-system` among them."""
    return SystemNamespaces(frozenset(configuration.system_namespaces))


def with_own_namespace(configuration: Configuration, namespace: str) -> Configuration:
    """The same, with Aliquot's own namespace of the system: a scheduler must not evict itself."""
    found = dict.fromkeys((*configuration.system_namespaces, namespace))
    return msgspec.structs.replace(configuration, system_namespaces=list(found))


def _check_models(models: dict[str, list[str]], place: str) -> None:
    """Refuse groups and label values that no resource and no label could have, and doubles."""
    group_of: dict[str, str] = {}
    for group, values in models.items():
        field = f"gpu.models.{group}" if group else "gpu.models"
        for problem in label_value(group) if group else ["a group must have a name"]:
            raise InputError(place, field, f"{group!r} is no name of a resource: {problem}")
        if not values:
            raise InputError(place, field, "lists no value of the label of nodes")
        for index, value in enumerate(values):
            where = f"{field}[{index}]"
            for problem in label_value(value) if value else ["it is empty"]:
                raise InputError(place, where, f"{value!r} is no value of a label: {problem}")
            if value in group_of:
                other = group_of[value]
                raise InputError(place, where, f"{value!r} is listed already, in {other}")
            group_of[value] = group


def _check_weights(weights: Weights, place: str) -> None:
    for word, weight in msgspec.to_builtins(weights).items():
        if not 0 <= weight <= _HIGHEST_WEIGHT:
            problem = f"is {weight}, must be a number from 0 to {_HIGHEST_WEIGHT}"
            raise InputError(place, f"placement.weights.{word}", problem)


def _check_constraints(constraints: list[Constraint], place: str) -> None:
    """Refuse what kube-scheduler refuses in its own `defaultConstraints`."""
    field = "placement.defaultConstraints"
    written = [TopologySpreadConstraint(**structs.asdict(each)) for each in constraints]

    def refuse(field: str, problem: str) -> None:
        raise InputError(place, field, problem)

    for index, each in enumerate(written):
        pod_rules.check_constraint(each, refuse, f"{field}[{index}]")
        for problem in label_key(each.topology_key):
            refuse(f"{field}[{index}].topologyKey", problem)
    pod_rules.check_repeats(written, refuse, field)


def _check_topology(levels: list[str], place: str) -> None:
    for index, label in enumerate(levels):
        for problem in label_key(label):
            raise InputError(place, f"topology[{index}]", problem)
        if label in levels[:index]:
            raise InputError(place, f"topology[{index}]", f"{label!r} stands here already")


def topology_levels(configuration: Configuration) -> tuple[str, ...]:
    """The labels of nodes that say which are near each other, from narrow to wide."""
    return tuple(reversed(configuration.topology))


def _check_brakes(eviction: Eviction, place: str) -> None:
    if eviction.max_per_minute < 0:
        problem = f"is {eviction.max_per_minute}, must be at least 0 (0: no brake)"
        raise InputError(place, "eviction.maxPerMinute", problem)
    if not 0 <= eviction.max_share <= 100:
        problem = f"is {eviction.max_share}, must be a percentage from 0 to 100 (0: no brake)"
        raise InputError(place, "eviction.maxShare", problem)


def _check_choices(body: Body, place: str) -> None:
    """Refuse a value that is none of a field's choices, and name the choices."""
    for section in msgspec.structs.fields(Configuration):
        kind, values = section.type, body.get(section.encode_name)
        if not (isinstance(kind, type) and issubclass(kind, Section) and isinstance(values, dict)):
            continue
        for field in msgspec.structs.fields(kind):
            choices = get_args(field.type) if get_origin(field.type) is Literal else ()
            value = values.get(field.encode_name)
            if choices and isinstance(value, str) and value not in choices:
                known = ", ".join(sorted(choices))
                where = f"{section.encode_name}.{field.encode_name}"
                raise InputError(place, where, f"{value!r} is none of {known}")


def default_constraints(configuration: Configuration) -> tuple[DefaultConstraint, ...]:
    """The topology spread of pods that state none."""
    return tuple(
        DefaultConstraint(each.topology_key, each.max_skew, each.when_unsatisfiable == _REQUIRED)
        for each in configuration.placement.default_constraints
    )


def knobs(configuration: Configuration, place: str = "") -> Knobs:
    """The engine's part of the configuration."""
    return Knobs(
        capacity=CapacityKnobs(borrow=configuration.capacity.borrow),
        fair=FairKnobs(
            borrow=configuration.fair.borrow,
            over_quota_order=tuple(configuration.fair.over_quota_order),
        ),
        hierarchy=HierarchyKnobs(
            revoke_after=duration(
                configuration.hierarchy.revoke_after, place, "hierarchy.revokeAfter"
            ),
            recycle=configuration.hierarchy.recycle,
            scale_min=configuration.hierarchy.scale_min,
            surplus=configuration.hierarchy.surplus,
            parent_pods=configuration.hierarchy.parent_pods,
        ),
        queues=QueuesKnobs(priority_bands=configuration.queues.priority_bands),
        eviction=EvictionKnobs(
            min_runtime=duration(configuration.eviction.min_runtime, place, "eviction.minRuntime"),
            quotaless=configuration.eviction.quotaless,
            on_quota_lowered=configuration.eviction.on_quota_lowered,
            hold_for=duration(configuration.eviction.hold_for, place, "eviction.holdFor"),
            node_lost_after=duration(
                configuration.eviction.node_lost_after, place, "eviction.nodeLostAfter"
            ),
            max_per_minute=configuration.eviction.max_per_minute,
            max_share=configuration.eviction.max_share,
            delete_after=duration(
                configuration.eviction.delete_after, place, "eviction.deleteAfter"
            ),
            max_grace=duration(configuration.eviction.max_grace, place, "eviction.maxGrace"),
            patience=duration(configuration.eviction.patience, place, "eviction.patience"),
        ),
        gpu=GpuKnobs(placement=configuration.gpu.placement),
        placement=PlacementKnobs(
            score=configuration.placement.score,
            reserve_after=duration(
                configuration.placement.reserve_after, place, "placement.reserveAfter"
            ),
            reserve_share=configuration.placement.reserve_share,
            volume_bind_timeout=duration(
                configuration.placement.volume_bind_timeout, place, "placement.volumeBindTimeout"
            ),
            weights=PlacementWeights(**structs.asdict(configuration.placement.weights)),
            default_constraints=default_constraints(configuration),
            topology=topology_levels(configuration),
        ),
        system_namespaces=system_namespaces(configuration),
    )
