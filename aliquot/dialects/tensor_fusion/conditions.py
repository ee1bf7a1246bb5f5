"""The conditions of GPUResourceQuotas over time: since when each has its status.

The engine knows only the conditions of the moment. A status needs `lastTransitionTime`, and a quota
that crosses a bound or threshold needs an event, once.
"""

from collections.abc import Iterable
from typing import NamedTuple

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.times import timestamp
from aliquot.engine import Condition, GpuQuotaSummary
from aliquot.errors import InputError

_Key = tuple[str, str]
"""Namespace and name of a quota."""

_EVENT_TYPES = ("Exceeded", "AlertThresholdReached")
"""The conditions whose changes are events."""


class Crossing(NamedTuple):
    """A quota has crossed a bound or threshold, in either direction."""

    at: int
    namespace: str
    name: str
    condition: Condition


class Conditions:
    """The last summary of each quota, and the times at which it and its conditions changed."""

    def __init__(self) -> None:
        self._summaries: dict[_Key, GpuQuotaSummary] = {}
        self._updated: dict[_Key, int] = {}
        self._since: dict[tuple[_Key, str], tuple[bool, int]] = {}
        self.crossings: list[Crossing] = []
        """The crossings so far, each to become one event."""

    @property
    def noted(self) -> bool:
        """Did any quota exist at the last `note`?"""
        return bool(self._summaries)

    def note(self, summaries: Iterable[GpuQuotaSummary], now: int) -> None:
        """Note the summaries of all quotas; a quota that is not among them was deleted."""
        there = {(each.namespace, each.name): each for each in summaries}
        for key, summary in there.items():
            if self._summaries.get(key) != summary:
                self._updated[key] = now
            for each in summary.conditions:
                status, _ = self._since.get((key, each.type), (not each.status, 0))
                if status != each.status:
                    known = (key, each.type) in self._since
                    self._since[key, each.type] = (each.status, now)
                    if each.type in _EVENT_TYPES and (known or each.status):
                        self.crossings.append(Crossing(now, *key, each))
        self._summaries = there
        self._updated = {key: at for key, at in self._updated.items() if key in there}
        self._since = {key: at for key, at in self._since.items() if key[0] in there}

    def recall(self, manifest: Manifest) -> None:
        """Take over the transition times in a quota's own status, after a restart."""
        status = manifest.body.get("status") or {}
        key = (manifest.namespace, manifest.name)
        for each in status.get("conditions") or ():
            at = _moment(each.get("lastTransitionTime"))
            if at is not None:
                self._since[key, str(each.get("type"))] = (each.get("status") == "True", at)

    def updated(self, summary: GpuQuotaSummary) -> int:
        """When the quota's summary last changed."""
        return self._updated.get((summary.namespace, summary.name), 0)

    def since(self, summary: GpuQuotaSummary, type: str) -> int:
        """When the quota's condition of this type last changed its status."""
        key = (summary.namespace, summary.name)
        return self._since.get((key, type), (False, 0))[1]


def _moment(written: object) -> int | None:
    try:
        return timestamp(str(written), "", "") if written else None
    except InputError:
        return None
