"""The parents of quotas, as they are written: which of them make a tree.

Quotas name their parents freely, so that there may be circles, and chains of any length. A tree has
at most `MOST_LEVELS` levels: every booking counts in all levels above it, and turns are taken on
each. Both are findings of `koordinator.rules` and `volcano.queue_rules`; where they were accepted
all the same, a circle is cut, and a quota that is too deep is placed on the last level, below its
ancestors of the levels before that: their bounds hold for it. Everything here takes a number of
steps that grows with the number of quotas, not with its square.
"""

from collections.abc import Iterator, Mapping

from aliquot.engine import MOST_LEVELS

_MOST_NAMED = 8
"""How many quotas of a circle a message names: enough to find a mistyped parent."""


def placed(parents: Mapping[str, str]) -> dict[str, str]:
    """The same parents without circles, and with quotas that are too deep moved up."""
    circles = set(_circles(parents))
    kept = {name: parent for name, parent in parents.items() if name not in circles}
    levels, moved = quota_levels(kept), dict(kept)
    for name in sorted(kept, key=levels.__getitem__):
        if levels[name] > MOST_LEVELS:
            above = moved[name]
            moved[name] = moved[above] if levels[above] >= MOST_LEVELS else above
    return moved


def problems(parents: Mapping[str, str | None]) -> dict[str, str]:
    """What is wrong with the parent of each quota, in words, for those of which it is wrong."""
    written = {name: parent for name, parent in parents.items() if parent is not None}
    circles = _circles(written)
    found = {name: _describe(name, length, written) for name, length in circles.items()}
    kept = {name: parent for name, parent in written.items() if name not in circles}
    for name, level in quota_levels(kept).items():
        if level > MOST_LEVELS:
            found[name] = (
                f"is level {level} of its tree; at most {MOST_LEVELS} levels are supported"
            )
    return found


def quota_levels(parents: Mapping[str, str]) -> dict[str, int]:
    """The level of every quota, the top being 1; there must be no circles."""
    levels: dict[str, int] = {}
    for name in parents:
        trail = []
        for at in _way_up(name, parents):
            if at in levels:
                break
            trail.append(at)
        base = levels.get(at, 0)
        levels.update((each, base + 1 + i) for i, each in enumerate(reversed(trail)))
    return levels


def _circles(parents: Mapping[str, str]) -> dict[str, int]:
    """The quotas that are their own ancestors, and how many are in the circle of each."""
    seen: set[str] = set()
    found: dict[str, int] = {}
    for name in parents:
        trail: dict[str, int] = {}
        at: str | None = name
        while at is not None and at not in seen:
            trail[at] = len(trail)
            seen.add(at)
            at = parents.get(at)
        if at in trail:
            circle = list(trail)[trail[at] :]
            found.update(dict.fromkeys(circle, len(circle)))
    return found


def _way_up(name: str, parents: Mapping[str, str]) -> Iterator[str]:
    """The quota and its ancestors, the nearest first; without end in a circle."""
    at: str | None = name
    while at is not None:
        yield at
        at = parents.get(at)


def _describe(name: str, length: int, parents: Mapping[str, str]) -> str:
    """The circle that a quota is in, for a message."""
    if length == 1:
        return "is its own parent"
    way = _way_up(name, parents)
    named = [next(way) for _ in range(min(length, _MOST_NAMED))]
    left_out = [f"{length - _MOST_NAMED} more"] if length > _MOST_NAMED else []
    return f"a circle: {' is below '.join([*named, *left_out, name])}"
