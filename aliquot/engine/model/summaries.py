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

    `runtime` and `guaranteed` are the policy's word; the latter under `fair` only.
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
    """The min in force, where it is less than promised because there is less than was promised."""


@dataclass(frozen=True, slots=True)
class NamespaceFigures:
    """A namespace in a queue: its weight, and its dominant share of the cluster by what it uses."""

    weight: int
    share: Fraction
    used: Figures


@dataclass(frozen=True, slots=True)
class QueueSummary:
    """One queue's figures: what it deserves now, and who uses what of it."""

    name: str
    weight: int
    deserved: Figures
    used: Figures
    namespaces: dict[str, NamespaceFigures]


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that is so, or not, and why."""

    type: str
    status: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class GpuQuotaSummary:
    """How a quota on GPUs stands.

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
class GangSummary:
    """How a gang stands: its phase, how many of its pods run, and why it waits, if it does."""

    name: str
    phase: Literal["Pending", "Inqueue", "Running", "Unknown", "Completed"]
    min_member: int
    running: int
    refusal: Refusal | None = None
