"""Quotas on GPUs as bars: how full each bound is, and which of them call for attention."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rich.console import RenderableType
from rich.text import Text

from aliquot.cli.show.bar import Part, bar, legend, room
from aliquot.cli.show.grid import indented, table
from aliquot.cluster.outcome import Result
from aliquot.engine.gpu_objects import GpuQuota
from aliquot.engine.quantity import amount, text

_PARTS: tuple[Part, ...] = (
    ("█", "green", "used"),
    ("▓", "yellow", "beyond the alert threshold"),
    ("▒", "red", "beyond the bound"),
    ("·", "bright_black", "up to the bound"),
)
_HEADINGS = ("quota", "figure", "used", "bound")
_NO_BARS = 72
"""A console narrower than this has no room for them."""


class _Line(NamedTuple):
    """A line: its words, the ends of its bar's parts, and a remark."""

    words: tuple[str, ...]
    ends: tuple[int, ...]
    remark: Text


def gpu_quota_bars(
    quotas: list[Result], bounds: Mapping[str, GpuQuota], width: int
) -> Iterator[RenderableType]:
    """The table, and what its signs mean. `bounds` are the quotas by namespace."""
    lines = [
        line for each in quotas for line in _lines(each, bounds[each["name"].partition("/")[0]])
    ]
    length = room(width, [_HEADINGS, *(each.words for each in lines)], (x.remark for x in lines))
    drawn = table(width, *_HEADINGS, "bar", "why", right=("used", "bound"))
    for column in drawn.columns[len(_HEADINGS) :]:
        column.header = ""
    for line in lines:
        shown = bar(line.ends, _PARTS, max(*line.ends, 1), length if width >= _NO_BARS else 0)
        drawn.add_row(Text(line.words[0], style="bold"), *line.words[1:], shown, line.remark)
    yield indented(drawn)
    if width >= _NO_BARS:
        yield indented(legend(_PARTS))


def _lines(quota: Result, bounds: GpuQuota) -> Iterator[_Line]:
    """A line for each figure that has a bound; one for the workers, if none has."""
    name, limits = quota["name"], _bounds(bounds)
    for figure in [each for each in limits if limits[each] is not None] or ["workers"]:
        words, bound = _used(quota, figure), limits[figure]
        resource = figure.partition(".")[2] or figure
        used = amount(resource, words)
        most = "∞" if bound is None else text(resource, bound)
        ends, remark = _ends(used, bound, bounds.threshold), _remark(used, bound, bounds.threshold)
        yield _Line((name, figure, words, most), ends, remark)
        name = ""


def _bounds(quota: GpuQuota) -> dict[str, int | None]:
    return {
        "requests.tflops": quota.requests.tflops,
        "requests.vram": quota.requests.vram,
        "limits.tflops": quota.limits.tflops,
        "limits.vram": quota.limits.vram,
        "workers": quota.workers,
    }


def _used(quota: Result, figure: str) -> str:
    section, _, word = figure.partition(".")
    used = quota["used"][section]
    return str(used[word] if word else used)


def _ends(used: int, bound: int | None, threshold: int) -> tuple[int, ...]:
    """Where each part of the bar ends, in hundredths; without a bound there is nothing to draw."""
    if bound is None:
        return (0, 0, 0, 0)
    calm, most, held = bound * threshold, bound * 100, used * 100
    return (min(held, calm), min(held, most), held, max(held, most))


def _remark(used: int, bound: int | None, threshold: int) -> Text:
    if bound is None or used * 100 <= bound * threshold:
        return Text()
    if used > bound:
        return Text("exceeded", style="red")
    return Text(f"alert: above {threshold}%", style="yellow")
