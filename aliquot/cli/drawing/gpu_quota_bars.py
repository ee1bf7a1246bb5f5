"""GPUResourceQuotas as bars: how much of each bound is used, which are near it or above it."""

from collections.abc import Iterator, Mapping

from rich.console import RenderableType
from rich.text import Text

from aliquot.cli.drawing.bars import BarRow, Segment, bar_table
from aliquot.engine import GpuQuota, quantity, ratio
from aliquot.simulation.outcome import Result

_SEGMENTS: tuple[Segment, ...] = (
    ("█", "green", "used"),
    ("▓", "yellow", "beyond the alert threshold"),
    ("▒", "red", "beyond the bound"),
    ("·", "bright_black", "up to the bound"),
)
_HEADINGS = ("quota", "figure", "used", "bound")


def gpu_quota_bars(
    quotas: list[Result], bounds: Mapping[str, GpuQuota], width: int
) -> Iterator[RenderableType]:
    """The table and its legend. `bounds` are the quotas by namespace."""
    rows = [row for each in quotas for row in _rows(each, bounds[each["name"].partition("/")[0]])]
    return bar_table(width, _HEADINGS, rows)


def _rows(quota: Result, bounds: GpuQuota) -> Iterator[BarRow]:
    """A row for each figure that has a bound; one for the workers if no figure has."""
    name, limits = quota["name"], _bounds(bounds)
    for figure in [each for each in limits if limits[each] is not None] or ["workers"]:
        shown, bound = _used(quota, figure), limits[figure]
        resource = figure.partition(".")[2] or figure
        used = quantity.amount(resource, shown)
        most = "∞" if bound is None else quantity.text(resource, bound)
        ends, remark = _ends(used, bound, bounds.threshold), _remark(used, bound, bounds.threshold)
        yield BarRow((name, figure, shown, most), _SEGMENTS, ends, max(*ends, 1), remark)
        name = ""


def _bounds(quota: GpuQuota) -> dict[str, int | None]:
    """The totals of the quota by figure; None where there is no bound."""
    return {
        "requests.tflops": quota.requests.tflops,
        "requests.vram": quota.requests.vram,
        "limits.tflops": quota.limits.tflops,
        "limits.vram": quota.limits.vram,
        "workers": quota.workers,
    }


def _used(quota: Result, figure: str) -> str:
    """What the pods of the quota use in this figure."""
    section, _, word = figure.partition(".")
    used = quota["used"][section]
    return str(used[word] if word else used)


def _ends(used: int, bound: int | None, threshold: int) -> tuple[int, ...]:
    """Where each segment of the bar ends, in hundredths; nothing is drawn without a bound."""
    if bound is None:
        return (0, 0, 0, 0)
    alert, full, held = bound * threshold, bound * 100, used * 100
    return (min(held, alert), min(held, full), held, max(held, full))


def _remark(used: int, bound: int | None, threshold: int) -> Text:
    """Above the bound, or above the alert threshold (a percentage of the bound)."""
    if bound is None or not ratio.above(used, bound, threshold):
        return Text()
    if ratio.above(used, bound):
        return Text("exceeded", style="red")
    return Text(f"alert: above {threshold}%", style="yellow")
