"""Figures as people read them in a report: spans of time, percents, amounts, names of resources."""

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_LEAST = 0.1


def span(seconds: float) -> str:
    """A span of time in one unit, with two digits where one would be rough."""
    if seconds < 2 * _MINUTE:
        return f"{_short(seconds)} s"
    if seconds < 2 * _HOUR:
        return f"{_short(seconds / _MINUTE)} min"
    if seconds < 2 * _DAY:
        return f"{_short(seconds / _HOUR)} h"
    return f"{_short(seconds / _DAY)} days"


def percent(part: float) -> str:
    """A part of one; neither all nor nothing unless it is."""
    shown = 100 * part
    if 0 < shown < 1:
        return "under 1%"
    if 99 < shown < 100:
        return "over 99%"
    return f"{shown:.0f}%"


def amount(number: float) -> str:
    """An amount: whole if it is large, and never nothing unless it is."""
    if 0 < number < _LEAST:
        return f"under {_LEAST}"
    return f"{_short(number)}" if number < 1000 else f"{number:,.0f}"


def index(value: float) -> str:
    """An index between 0 and 1."""
    return f"{value:.2f}"


def resource(name: str | None) -> str:
    """What a resource is called in a heading: `GPUs` for nvidia.com/gpu."""
    if name is None:
        return "nothing"
    known = {"nvidia.com/gpu": "GPUs", "amd.com/gpu": "GPUs", "cpu": "CPUs", "tflops": "TFLOPs"}
    return known.get(name, name.rpartition("/")[2])


def amounts(text: str) -> str:
    """What pods of a size request, in the same short names: `8 cpu, 1 GPU`."""
    pairs = (each.rpartition(" ") for each in text.split(", "))
    return ", ".join(
        f"{number} GPU" if name.endswith(".com/gpu") else f"{number} {name.rpartition('/')[2]}"
        for number, _, name in pairs
    ).strip()


def hours(name: str | None) -> str:
    """The unit of a resource times time: `GPU-hours`."""
    word = resource(name)
    return f"{word[:-1] if word in ('GPUs', 'CPUs') else word}-hours"


def number(count: int, one: str, more: str = "") -> str:
    """A count with its noun: `1 pod`, `2 pods`."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def _short(value: float) -> str:
    return f"{value:.1f}" if value < 10 and round(value, 1) % 1 else f"{value:.0f}"
