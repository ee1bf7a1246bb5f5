"""Since when the conditions of quotas on GPUs have been as they are."""

from collections.abc import Iterable
from typing import NamedTuple

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.times import timestamp
from aliquot.engine import Condition, GpuQuotaSummary
from aliquot.errors import InputError

_Key = tuple[str, str]
"""Namespace and name of a quota."""

_WORTH_TELLING = ("Exceeded", "AlertThresholdReached")


class Crossing(NamedTuple):
    """A quota has come to be beyond a bound or threshold, or is so no longer."""

    at: int
    namespace: str
    name: str
    condition: Condition


class Conditions:
    """What was last noted of each quota, and when it came to be so."""

    def __init__(self) -> None:
        self._summaries: dict[_Key, GpuQuotaSummary] = {}
        self._updated: dict[_Key, int] = {}
        self._since: dict[tuple[_Key, str], tuple[bool, int]] = {}
        self.crossings: list[Crossing] = []
        """What is worth an event: told once, when it happens."""

    @property
    def noted(self) -> bool:
        """Was any quota there last time?"""
        return bool(self._summaries)

    def note(self, summaries: Iterable[GpuQuotaSummary], now: int) -> None:
        """The quotas stand like this now; those that are not among them are gone."""
        there = {(each.namespace, each.name): each for each in summaries}
        for key, summary in there.items():
            if self._summaries.get(key) != summary:
                self._updated[key] = now
            for each in summary.conditions:
                status, _ = self._since.get((key, each.type), (not each.status, 0))
                if status != each.status:
                    known = (key, each.type) in self._since
                    self._since[key, each.type] = (each.status, now)
                    if each.type in _WORTH_TELLING and (known or each.status):
                        self.crossings.append(Crossing(now, *key, each))
        self._summaries = there
        self._updated = {key: at for key, at in self._updated.items() if key in there}
        self._since = {key: at for key, at in self._since.items() if key[0] in there}

    def recall(self, manifest: Manifest) -> None:
        """Go on from what a quota's own status says of the time before."""
        status = manifest.body.get("status") or {}
        key = (manifest.namespace, manifest.name)
        for each in status.get("conditions") or ():
            at = _moment(each.get("lastTransitionTime"))
            if at is not None:
                self._since[key, str(each.get("type"))] = (each.get("status") == "True", at)

    def updated(self, summary: GpuQuotaSummary) -> int:
        """When it last changed in any way."""
        return self._updated.get((summary.namespace, summary.name), 0)

    def since(self, summary: GpuQuotaSummary, type: str) -> int:
        """When a condition of this type became what it is."""
        key = (summary.namespace, summary.name)
        return self._since.get((key, type), (False, 0))[1]


def _moment(written: object) -> int | None:
    try:
        return timestamp(str(written), "", "") if written else None
    except InputError:
        return None
