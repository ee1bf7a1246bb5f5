"""How quotas on GPUs stand, in words: for results, and for what is written into the objects."""

from fractions import Fraction

from aliquot.dialects.core.documents import Body
from aliquot.dialects.tensor_fusion.amounts import write
from aliquot.engine.report.summary import Condition, GpuQuotaSummary


def used(summary: GpuQuotaSummary) -> Body:
    """What the pods of its namespace use."""
    return {
        "requests": write(summary.requests),
        "limits": write(summary.limits),
        "workers": summary.workers,
    }


def available_percent(summary: GpuQuotaSummary) -> dict[str, str]:
    """What is left of each bound, to two digits; `100` where there is none."""
    return {word: _percent(left) for word, left in summary.available_percent.items()}


def condition(each: Condition) -> Body:
    """One thing that is so, or not, and why."""
    return {
        "type": each.type,
        "status": str(each.status),
        "reason": each.reason,
        "message": each.message,
    }


def _percent(left: Fraction | None) -> str:
    if left is None:
        return "100"
    whole, part = divmod(round(max(left, Fraction(0)) * 100), 100)
    return f"{whole}.{part:02}"
