"""Reasons: why a pod is pending and why one is evicted, in the words that users see.

A refusal carries the numbers in its message, and what it waits for (`watch`), so that the claim is
tried again when that has changed and not before.
"""

from dataclasses import dataclass
from enum import StrEnum

from aliquot.engine.model.quantity import text


class Reason(StrEnum):
    """One word for one cause; see docs/reference/reasons.md."""

    QUOTA_MAX_EXCEEDED = "QuotaMaxExceeded"
    BORROWING_EXHAUSTED = "BorrowingExhausted"
    RUNTIME_EXCEEDED = "RuntimeExceeded"
    ANCESTOR_EXCEEDED = "AncestorExceeded"
    NON_PREEMPTIBLE_ABOVE_MIN = "NonPreemptibleAboveMin"
    PARENT_QUOTA = "ParentQuota"
    QUEUE_OVER_DESERVED = "QueueOverDeserved"
    QUEUE_CLOSED = "QueueClosed"
    QUEUE_MISSING = "QueueMissing"
    QUOTA_NOT_ALLOWED = "QuotaNotAllowed"
    GPU_QUOTA_EXCEEDED = "GPUQuotaExceeded"
    GANG_INCOMPLETE = "GangIncomplete"
    NO_NODE_FITS = "NoNodeFits"
    TOPOLOGY_UNSATISFIED = "TopologyUnsatisfied"
    VOLUME_MISSING = "VolumeMissing"
    WAITING_FOR_VOLUME = "WaitingForVolume"
    SCHEDULING_GATED = "SchedulingGated"
    NOT_SUPPORTED = "NotSupported"
    TERMINATING = "Terminating"
    WAITING_FOR_VICTIMS = "WaitingForVictims"
    EVICTION_BRAKE = "EvictionBrake"
    EVICTIONS_PAUSED = "EvictionsPaused"
    RESERVED = "Reserved"
    RESERVED_FOR_OTHERS = "ReservedForOthers"
    RECLAIMED_FOR_MIN = "ReclaimedForMin"
    FAIR_SHARE = "FairShare"
    RECYCLED = "Recycled"
    SURPLUS_RETURNED = "SurplusReturned"
    PREEMPTED_IN_QUOTA = "PreemptedInQuota"
    QUEUE_RECLAIMED = "QueueReclaimed"
    QUEUE_PREEMPTED = "QueuePreempted"
    PREEMPTED = "Preempted"
    BACKFILL_OVERDUE = "BackfillOverdue"
    PREEMPTED_IN_GPU_QUOTA = "PreemptedInGPUQuota"
    QUOTA_LOWERED = "QuotaLowered"
    NODE_LOST = "NodeLost"


EVICTION_REASONS = tuple(Reason)[tuple(Reason).index(Reason.RECLAIMED_FOR_MIN) :]
"""Why pods are evicted; the words before are why they wait."""
NO_ROOM = (Reason.NO_NODE_FITS, Reason.TOPOLOGY_UNSATISFIED)
"""The nodes refuse a claim: victims, or other pods of its gang, may help."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What must change before a refused claim could start: a quota's usage, or free capacity."""

    quota: str | None = None
    nodes: bool = False
    borrowers: bool = False
    victims: bool = False
    """Any of its victims, or room that is freed for another claim, which it may take."""
    gpus: str | None = None
    """The namespace whose GPU usage must change."""
    rules: bool = False
    """What other pods are on nodes, as far as rules about pods and ports depend on it."""
    brake: bool = False
    """Evictions may go on that the brake has put off."""
    moves: bool = False
    """Evictions may be made again that were made before: the cluster has changed from outside."""
    volumes: str | None = None
    """The claim, volume or class that must change; see `model.volumes`."""


ROOM = Watch(nodes=True)
RULES = Watch(rules=True)
VICTIMS = Watch(victims=True)
BORROWERS = Watch(borrowers=True)
"""A pod has started to borrow: a claim within its min could reclaim from it."""
MOVES = Watch(moves=True)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a claim may not start now: the rule, the quota and resource, the numbers."""

    reason: Reason
    message: str
    quota: str | None = None
    resource: str | None = None
    watch: tuple[Watch, ...] = ()


def ask_text(pods: int, resource: str, amount: int) -> str:
    """`pod asks 2`, `8 pods ask 16`: what a claim requests, as messages put it."""
    wants = text(resource, amount)
    return f"pod asks {wants}" if pods == 1 else f"{pods} pods ask {wants}"


def held_text(resource: str, held: int) -> str:
    """`, held for others 2`: what is held for other claims, or nothing."""
    return f", held for others {text(resource, held)}" if held else ""
