"""What every quota used lately, from each moment at which it changed: for curves and the slider.

Kept in memory for as long as the page is served; it begins when the page does.
"""

from collections import deque
from typing import Any

from aliquot.engine import SECOND, QuotaSummary

_KEPT = 3600 * SECOND
"""How far back curves reach: an hour tells how the cluster came to be as it is."""
_MOST = 2000
"""Changes of one quota that are kept: as many as a screen can draw apart."""

_Point = tuple[int, int, int]
"""A moment, what was used from then on, and the min."""


class History:
    """The curves of used and min, in the resource that matters most."""

    def __init__(self) -> None:
        self.resource = ""
        self._began = 0
        self._now = 0
        self._curves: dict[str, deque[_Point]] = {}

    def note(self, summaries: list[QuotaSummary], resource: str, now: int) -> None:
        """Keep what differs from before; another resource begins anew."""
        if resource != self.resource:
            self.resource, self._began = resource, now
            self._curves.clear()
        self._now = now
        for each in summaries:
            self._add(each.name, now, each.used.get(resource, 0), each.min.get(resource, 0))
        if len(self._curves) > len(summaries):
            for name in self._curves.keys() - {each.name for each in summaries}:
                self._end(name, now)

    def _add(self, name: str, now: int, used: int, low: int) -> None:
        curve = self._curves.get(name)
        if curve is None:
            curve = self._curves[name] = deque(maxlen=_MOST)
        if curve and curve[-1][1:] == (used, low):
            return
        if curve and curve[-1][0] == now:
            curve.pop()
        curve.append((now, used, low))
        while len(curve) > 1 and curve[1][0] <= now - _KEPT:
            curve.popleft()

    def _end(self, name: str, now: int) -> None:
        """A quota is there no more: its curve ends at nothing, and is forgotten after an hour."""
        self._add(name, now, 0, 0)
        if self._curves[name][-1][0] <= now - _KEPT:
            del self._curves[name]

    def of(self, name: str) -> dict[str, Any]:
        """The curve of one quota, up to now."""
        found = list(self._curves.get(name, ()))
        if found and found[-1][0] < self._now:
            found.append((self._now, *found[-1][1:]))
        return {
            "resource": self.resource,
            "times": [at / SECOND for at, _, _ in found],
            "used": [used for _, used, _ in found],
            "min": [low for _, _, low in found],
        }

    def all(self) -> dict[str, Any]:
        """What every quota used: each moment at which it changed, and from then on how much."""
        return {
            "resource": self.resource,
            "from": max(self._began, self._now - _KEPT) / SECOND,
            "to": self._now / SECOND,
            "quotas": {
                name: [[at / SECOND, used] for at, used, _ in curve]
                for name, curve in sorted(self._curves.items())
                if any(used for _, used, _ in curve)
            },
        }
