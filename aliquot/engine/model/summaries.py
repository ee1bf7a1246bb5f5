"""The figures of quotas, queues, GPU quotas and gangs, as tables, JSON and metrics show them."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from aliquot.engine.model.gpu import GpuAmount
from aliquot.engine.model.reasons import Refusal

Figures = dict[str, int]
"""Amounts by resource name."""


@dataclass(frozen=True, slots=True)
class QuotaSummary:
    """One quota's figures. A resource without a bound is missing from `max`.

    `runtime` and `guaranteed` are filled in by the policy; the latter under `fair` only.
    """

    name: str
    parent: str | None
    min: Figures
    max: Figures
    used: Figures
    request: Figures
    runtime: Figures
    weight: Figures
    borrowed: Figures
    idle: Figures
    guaranteed: Figures | None = None
    scaled_min: Figures | None = None
    """The min in force, where it is scaled down because the cluster has less than all mins."""
    tree: str | None = None
    """The tree that it is in, if that is one with nodes of its own."""


@dataclass(frozen=True, slots=True)
class Loan:
    """What one quota uses of another's idle min, in one resource."""

    lender: str
    borrower: str
    resource: str
    amount: int


@dataclass(frozen=True, slots=True)
class NamespaceFigures:
    """A namespace in a queue: its weight, and the dominant share of the cluster that it uses."""

    weight: int
    share: Fraction
    used: Figures


@dataclass(frozen=True, slots=True)
class QueueSummary:
    """One queue's figures: what it deserves now, and what each namespace uses of it."""

    name: str
    weight: int
    deserved: Figures
    used: Figures
    namespaces: dict[str, NamespaceFigures]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition, as in the status of Kubernetes objects."""

    type: str
    status: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class GpuQuotaSummary:
    """The figures of a GPU quota.

    `available_percent` by `requests.tflops`, `requests.vram`, `limits.tflops`, `limits.vram` and
    `workers`; None where there is no bound.
    """

    namespace: str
    name: str
    requests: GpuAmount
    limits: GpuAmount
    workers: int
    available_percent: dict[str, Fraction | None]
    conditions: list[Condition]


@dataclass(frozen=True, slots=True)
class BrakeSummary:
    """How the brake on evictions stands."""

    paused: bool
    limit: int | None
    """The most evictions by choice in a minute; None: no brake."""
    made: int
    """Those of the last minute."""


@dataclass(frozen=True, slots=True)
class GangSummary:
    """A gang: its phase, how many of its pods run, and why it is pending, if it is.

    Of those that run, `leaving` pods are being deleted or evicted.
    """

    name: str
    phase: Literal["Pending", "Inqueue", "Running", "Unknown", "Completed"]
    min_member: int
    running: int
    refusal: Refusal | None = None
    leaving: int = 0
