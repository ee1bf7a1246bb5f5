"""GPUResourceQuotas as bars: how much of each bound is used, which are near it or above it."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rich.console import RenderableType
from rich.text import Text

from aliquot.cli.show.grid import (
    NARROWEST_WITH_BARS,
    Segment,
    bar,
    bar_length,
    indented,
    legend,
    table,
)
from aliquot.engine import GpuQuota, quantity, ratio
from aliquot.simulation.outcome import Result

_SEGMENTS: tuple[Segment, ...] = (
    ("█", "green", "used"),
    ("▓", "yellow", "beyond the alert threshold"),
    ("▒", "red", "beyond the bound"),
    ("·", "bright_black", "up to the bound"),
)
_HEADINGS = ("quota", "figure", "used", "bound")


class _Line(NamedTuple):
    """A line: its cells, where the segments of its bar end, and a remark."""

    cells: tuple[str, ...]
    ends: tuple[int, ...]
    remark: Text


def gpu_quota_bars(
    quotas: list[Result], bounds: Mapping[str, GpuQuota], width: int
) -> Iterator[RenderableType]:
    """The table and its legend. `bounds` are the quotas by namespace."""
    lines = [
        line for each in quotas for line in _lines(each, bounds[each["name"].partition("/")[0]])
    ]
    rows = [_HEADINGS, *(each.cells for each in lines)]
    length = bar_length(width, rows, (each.remark for each in lines))
    drawn = table(width, *_HEADINGS, "bar", "why", right=("used", "bound"))
    for column in drawn.columns[len(_HEADINGS) :]:
        column.header = ""
    for line in lines:
        room = length if width >= NARROWEST_WITH_BARS else 0
        shown = bar(line.ends, _SEGMENTS, max(*line.ends, 1), room)
        drawn.add_row(Text(line.cells[0], style="bold"), *line.cells[1:], shown, line.remark)
    yield indented(drawn)
    if width >= NARROWEST_WITH_BARS:
        yield indented(legend(_SEGMENTS))


def _lines(quota: Result, bounds: GpuQuota) -> Iterator[_Line]:
    """A line for each figure that has a bound; one for the workers if no figure has."""
    name, limits = quota["name"], _bounds(bounds)
    for figure in [each for each in limits if limits[each] is not None] or ["workers"]:
        shown, bound = _used(quota, figure), limits[figure]
        resource = figure.partition(".")[2] or figure
        used = quantity.amount(resource, shown)
        most = "∞" if bound is None else quantity.text(resource, bound)
        ends, remark = _ends(used, bound, bounds.threshold), _remark(used, bound, bounds.threshold)
        yield _Line((name, figure, shown, most), ends, remark)
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
