"""Axes: round steps for amounts and for times, so that no more than a few labels are needed."""

from dataclasses import dataclass

_MOST_X, _MOST_Y = 5, 5
"""Steps of an axis: as many as have room for their labels on a phone."""
_S, _MIN, _H, _D = 1, 60, 3600, 86400
_STEPS = (
    *(each * _S for each in (1, 2, 5, 10, 15, 30)),
    *(each * _MIN for each in (1, 2, 5, 10, 15, 30)),
    *(each * _H for each in (1, 2, 3, 6, 12)),
    *(each * _D for each in (1, 2, 5, 7, 14, 30, 60, 90, 180, 365)),
)
_UNITS = ((_D, "d"), (_H, "h"), (_MIN, "min"), (_S, "s"))


@dataclass(frozen=True, slots=True)
class Tick:
    """A label, and where it stands: 0 to 1."""

    at: float
    label: str


def times(end: float) -> tuple[Tick, ...]:
    """The labels of an axis of time that ends after so many seconds."""
    if end <= 0:
        return ()
    step = next((each for each in _STEPS if end / each <= _MOST_X), _STEPS[-1] * 2)
    while end / step > _MOST_X:
        step *= 2
    size, unit = next((size, unit) for size, unit in _UNITS if step % size == 0)
    marks = range(0, int(end) + 1, step)
    return tuple(Tick(mark / end, "0" if not mark else f"{mark // size} {unit}") for mark in marks)


def amounts(
    most: float, percent: bool = False, whole: bool = False
) -> tuple[float, tuple[Tick, ...]]:
    """Where an axis of amounts ends, and its labels; of what is counted, only whole numbers."""
    if percent:
        marks = (0, 25, 50, 75, 100)
        return 1.0, tuple(Tick(mark / 100, f"{mark}%") for mark in marks)
    step = _round_up(most / (_MOST_Y - 1)) if most > 0 else 1.0
    if whole:
        step = max(1.0, float(-int(-step // 1)))
    number = max(1, -int(-most // step))
    top = number * step
    return top, tuple(Tick(n / number, _label(n * step)) for n in range(number + 1))


def _round_up(value: float) -> float:
    """The next of 1, 2, 2.5, 5 times a power of ten."""
    power = 1.0
    while power < value:
        power *= 10
    while power / 10 >= value:
        power /= 10
    return next(power * each for each in (0.1, 0.2, 0.25, 0.5, 1.0) if power * each >= value)


def _label(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{round(value, 6):g}"
