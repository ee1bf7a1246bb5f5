"""The figures and conditions of GPU quotas: what is used and left of each.

Used counts committed pods only; assumed ones block other claims, but are not shown. `Ready` is
false only for an invalid spec; `Exceeded` is true when more is used than the total, as happens when
a quota comes late or is lowered; `AlertThresholdReached` when more than the threshold's percentage
of any bound is used.
"""

from collections.abc import Iterator
from fractions import Fraction

from aliquot.engine.books.ledger import Stage
from aliquot.engine.gpus.quotas import Usage
from aliquot.engine.model.gpu import GpuQuota
from aliquot.engine.model.quantity import text
from aliquot.engine.model.ratio import above
from aliquot.engine.model.summaries import Condition, GpuQuotaSummary
from aliquot.engine.state import State

_PERCENT = 100


def summarise(state: State) -> list[GpuQuotaSummary]:
    """The figures of every GPU quota, by namespace."""
    used = _used(state)
    return [
        _summary(quota, used.get(namespace, Usage()))
        for namespace, quota in sorted(state.gpu_quotas.known.items())
    ]


def _used(state: State) -> dict[str, Usage]:
    found: dict[str, Usage] = {}
    if not state.gpu_quotas.known:
        return found
    for entry in state.ledger.entries.values():
        booking = entry.booking
        if entry.stage is Stage.COMMITTED and booking.gpu is not None:
            before = found.get(booking.namespace, Usage())
            found[booking.namespace] = before.plus(booking.gpu, +1)
    return found


def _summary(quota: GpuQuota, used: Usage) -> GpuQuotaSummary:
    figures = list(_figures(quota, used))
    percent = {
        name: None if not most else max(Fraction((most - has) * _PERCENT, most), Fraction(0))
        for name, _, has, most in figures
    }
    return GpuQuotaSummary(
        quota.namespace,
        quota.name,
        used.requests,
        used.limits,
        used.workers,
        percent,
        [_ready(quota), _exceeded(figures), _alert(quota, figures)],
    )


Figure = tuple[str, str, int, int | None]
"""A name, its unit, the amount used, and the bound if there is one."""


def _figures(quota: GpuQuota, used: Usage) -> Iterator[Figure]:
    yield "requests.tflops", "tflops", used.requests.tflops, quota.requests.tflops
    yield "requests.vram", "vram", used.requests.vram, quota.requests.vram
    yield "limits.tflops", "tflops", used.limits.tflops, quota.limits.tflops
    yield "limits.vram", "vram", used.limits.vram, quota.limits.vram
    yield "workers", "workers", used.workers, quota.workers


def _ready(quota: GpuQuota) -> Condition:
    if quota.problem:
        return Condition("Ready", False, "InvalidSpec", quota.problem)
    return Condition("Ready", True, "InForce", "the quota is in force")


def _exceeded(figures: list[Figure]) -> Condition:
    over = [each for each in figures if each[3] is not None and above(each[2], each[3])]
    if over:
        return Condition("Exceeded", True, "AboveTotal", _words(over))
    return Condition("Exceeded", False, "WithinTotal", "nothing is used beyond its bound")


def _alert(quota: GpuQuota, figures: list[Figure]) -> Condition:
    high = [
        each for each in figures if each[3] is not None and above(each[2], each[3], quota.threshold)
    ]
    kind = "AlertThresholdReached"
    if high:
        words = f"more than {quota.threshold}% in use: {_words(high)}"
        return Condition(kind, True, "ThresholdReached", words)
    return Condition(kind, False, "BelowThreshold", f"at most {quota.threshold}% in use")


def _words(figures: list[Figure]) -> str:
    return ", ".join(
        f"{name} {text(unit, used)} of {text(unit, most or 0)}"
        for name, unit, used, most in figures
    )
