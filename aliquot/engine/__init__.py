"""The engine: events in, decisions out. Pure: no I/O, no clock, no randomness, numpy only.

This is its only door: other packages import from here, never from the modules inside, so that those
can change. Inside, from the bottom: model, columns, sharing, books, gpus, placement, queue, state,
updates, gang_claims and wakeups, policies, reclaim and holds, trial, report, cycle.
"""

from aliquot.engine.books.membership import Membership
from aliquot.engine.columns import Resources, Slots
from aliquot.engine.cycle import Engine
from aliquot.engine.gpus.devices import resolve_ask
from aliquot.engine.gpus.quotas import DeviceRequest, above_single
from aliquot.engine.model import quantity, ratio
from aliquot.engine.model.decisions import (
    Bind,
    Decision,
    Evict,
    Nominate,
    Wait,
    binds_and_evictions,
    evictions,
)
from aliquot.engine.model.events import (
    BindFailed,
    BudgetGone,
    BudgetSet,
    DeviceGone,
    DeviceSet,
    Event,
    EvictFailed,
    EvictionsPaused,
    EvictionsResumed,
    GangGone,
    GangSet,
    GpuQuotaGone,
    GpuQuotaSet,
    NamespaceGone,
    NamespaceSet,
    NodeGone,
    NodeSet,
    PodGone,
    PodSet,
    QuotaGone,
    QuotaSet,
    WeightSet,
)
from aliquot.engine.model.gang import Gang
from aliquot.engine.model.gpu import (
    NO_GPU_AMOUNT,
    WHOLE_GPU,
    Device,
    GpuAmount,
    GpuAsk,
    GpuBound,
    GpuQuota,
)
from aliquot.engine.model.importance import ImportanceKey, importance, natural
from aliquot.engine.model.knobs import (
    SECOND,
    CapacityKnobs,
    EvictionKnobs,
    FairKnobs,
    GpuKnobs,
    HierarchyKnobs,
    Knobs,
    PlacementKnobs,
    PlacementWeights,
    QueuesKnobs,
)
from aliquot.engine.model.label_index import MOST_LABEL_SETS, LabelIndex
from aliquot.engine.model.node import Effect, Node, NodeConstraints, Taint, Toleration
from aliquot.engine.model.pod import GPU_MEMORY, Budget, Pod, Shape
from aliquot.engine.model.pod_rules import (
    NO_RULES,
    AffinityTerm,
    HostPort,
    PodRules,
    PodSelector,
    SpreadConstraint,
)
from aliquot.engine.model.quantity import Amounts, add_amounts
from aliquot.engine.model.quota import MOST_LEVELS, Quota
from aliquot.engine.model.reasons import Reason, Refusal
from aliquot.engine.model.selector import Requirement, Term, requirement_matches
from aliquot.engine.model.summaries import (
    BrakeSummary,
    Condition,
    Figures,
    GangSummary,
    GpuQuotaSummary,
    NamespaceFigures,
    QueueSummary,
    QuotaSummary,
)
from aliquot.engine.model.system_namespaces import (
    CRITICAL_PRIORITY,
    KUBE_SYSTEM,
    SystemNamespaces,
)
from aliquot.engine.model.volumes import VolumeBinding, VolumeUse
from aliquot.engine.placement.constraints import node_refusal
from aliquot.engine.sharing.runtime import RuntimeTree
from aliquot.engine.sharing.waterfill import fill

__all__ = [
    "CRITICAL_PRIORITY",
    "GPU_MEMORY",
    "KUBE_SYSTEM",
    "MOST_LABEL_SETS",
    "MOST_LEVELS",
    "NO_GPU_AMOUNT",
    "NO_RULES",
    "SECOND",
    "WHOLE_GPU",
    "AffinityTerm",
    "Amounts",
    "Bind",
    "BindFailed",
    "BrakeSummary",
    "Budget",
    "BudgetGone",
    "BudgetSet",
    "CapacityKnobs",
    "Condition",
    "Decision",
    "Device",
    "DeviceGone",
    "DeviceRequest",
    "DeviceSet",
    "Effect",
    "Engine",
    "Event",
    "Evict",
    "EvictFailed",
    "EvictionKnobs",
    "EvictionsPaused",
    "EvictionsResumed",
    "FairKnobs",
    "Figures",
    "Gang",
    "GangGone",
    "GangSet",
    "GangSummary",
    "GpuAmount",
    "GpuAsk",
    "GpuBound",
    "GpuKnobs",
    "GpuQuota",
    "GpuQuotaGone",
    "GpuQuotaSet",
    "GpuQuotaSummary",
    "HierarchyKnobs",
    "HostPort",
    "ImportanceKey",
    "Knobs",
    "LabelIndex",
    "Membership",
    "NamespaceFigures",
    "NamespaceGone",
    "NamespaceSet",
    "Node",
    "NodeConstraints",
    "NodeGone",
    "NodeSet",
    "Nominate",
    "PlacementKnobs",
    "PlacementWeights",
    "Pod",
    "PodGone",
    "PodRules",
    "PodSelector",
    "PodSet",
    "QueueSummary",
    "QueuesKnobs",
    "Quota",
    "QuotaGone",
    "QuotaSet",
    "QuotaSummary",
    "Reason",
    "Refusal",
    "Requirement",
    "Resources",
    "RuntimeTree",
    "Shape",
    "Slots",
    "SpreadConstraint",
    "SystemNamespaces",
    "Taint",
    "Term",
    "Toleration",
    "VolumeBinding",
    "VolumeUse",
    "Wait",
    "WeightSet",
    "above_single",
    "add_amounts",
    "binds_and_evictions",
    "evictions",
    "fill",
    "importance",
    "natural",
    "node_refusal",
    "quantity",
    "ratio",
    "requirement_matches",
    "resolve_ask",
]
