"""What a scenario can expect after a step. A word that is not known here is refused.

Only what is listed is compared (`simulation.comparison`). The figures have the words of
`aliquot simulate -o json`.
"""

from typing import Any

from msgspec import UNSET, UnsetType

from aliquot.dialects.core.objects import Wire

Amounts = dict[str, Any] | UnsetType
Names = list[str] | None


class Why(Wire, forbid_unknown_fields=True):
    """Why a pod should wait, or was to be evicted; of the message, a part is enough."""

    reason: str | None = None
    message: str = ""


class QuotaFigures(Wire, forbid_unknown_fields=True):
    """Figures of a quota."""

    parent: str | UnsetType | None = UNSET
    tree: str | UnsetType | None = UNSET
    min: Amounts = UNSET
    max: Amounts = UNSET
    used: Amounts = UNSET
    request: Amounts = UNSET
    runtime: Amounts = UNSET
    weight: Amounts = UNSET
    borrowed: Amounts = UNSET
    idle: Amounts = UNSET
    guaranteed: Amounts = UNSET
    scaled_min: Amounts | None = UNSET


class NamespaceFigures(Wire, forbid_unknown_fields=True):
    """Figures of a namespace in a queue."""

    weight: int | UnsetType = UNSET
    share: Any = UNSET
    used: Amounts = UNSET


class QueueFigures(Wire, forbid_unknown_fields=True):
    """Figures of a queue."""

    weight: int | UnsetType = UNSET
    deserved: Amounts = UNSET
    used: Amounts = UNSET
    namespaces: dict[str, NamespaceFigures] | UnsetType = UNSET


class GangFigures(Wire, forbid_unknown_fields=True):
    """Figures of a gang."""

    phase: str | UnsetType = UNSET
    min_member: int | UnsetType = UNSET
    running: int | UnsetType = UNSET


class GpuUse(Wire, forbid_unknown_fields=True):
    """What is used of GPUs."""

    requests: Amounts = UNSET
    limits: Amounts = UNSET
    workers: int | UnsetType = UNSET


class GpuQuotaFigures(Wire, forbid_unknown_fields=True):
    """Figures of a quota on GPUs; of a condition, the status or any of its fields."""

    used: GpuUse | UnsetType = UNSET
    available_percent: dict[str, Any] | UnsetType = UNSET
    conditions: dict[str, Any] | UnsetType = UNSET


class Expect(Wire, forbid_unknown_fields=True):
    """What should hold after a step. `evicted` and `evictions` are about the time since the last.

    `order` are pods that have started one after the other; `absent` are pods that do not exist, or
    no longer.
    """

    running: list[str] | dict[str, str] | None = None
    pending: list[str] | dict[str, str | Why] | None = None
    evicted: list[str] | dict[str, str | Why] | None = None
    evictions: int | None = None
    order: Names = None
    absent: Names = None
    labels: dict[str, str | None] | None = None
    quotas: dict[str, QuotaFigures] | None = None
    queues: dict[str, QueueFigures] | None = None
    gangs: dict[str, GangFigures] | None = None
    gpu_quotas: dict[str, GpuQuotaFigures] | None = None
    devices: dict[str, list[str]] | None = None
