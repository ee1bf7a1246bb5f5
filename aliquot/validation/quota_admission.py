"""Pods that a quota does not admit, as their server would refuse them, one after the other.

A pod counts from when it comes until it is deleted; one that has ended does not count.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from aliquot.dialects.core import pods
from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.manifest import Key, Manifest
from aliquot.dialects.core.objects import PodWire
from aliquot.dialects.core.pod_templates import template_views
from aliquot.dialects.koordinator import admission
from aliquot.validation.history import State

_Sums = dict[str, int]


@dataclass(slots=True)
class QuotaAdmission:
    """What the pods so far ask for, by pod, where any quota limits it."""

    _asks: dict[Key, tuple[str, _Sums]] = field(default_factory=dict)
    """The quota of each pod, and what the pod asks for."""

    def refused(self, state: State) -> Iterator[Finding]:
        """Errors about the pods of a state's change that their quotas do not admit."""
        limited = {
            bounds.name: (manifest, bounds)
            for manifest, bounds in state.quota_index.pairs
            if admission.limits(manifest, bounds) is not None
        }
        if not limited and not self._asks:
            return
        for key in state.deleted:
            self._asks.pop(key, None)
        for manifest in state.applied:
            found = _asks_of(manifest, state)
            if found is None:
                continue
            home, asks = found
            before = self._asks.pop(manifest.key, ("", {}))[0]
            if home in limited and home != before:
                problem = admission.refusal(*limited[home], self._asked(home), asks)
                if problem is not None:
                    yield manifest.finding("error", "", problem)
                    continue
            self._asks[manifest.key] = found

    def _asked(self, quota: str) -> _Sums:
        """What the pods of a quota ask for together."""
        total: _Sums = {}
        for home, asks in self._asks.values():
            for name, amount in asks.items() if home == quota else ():
                total[name] = total.get(name, 0) + amount
        return total


def _asks_of(manifest: Manifest, state: State) -> tuple[str, _Sums] | None:
    """The quota of a pod, and what it asks for; None for other objects, and for pods without."""
    content = manifest.content
    if not isinstance(content, PodWire) or content.spec is None or pods.finished(content.status):
        return None
    view = template_views(manifest)[0]
    named = state.requested_quota(manifest, view)
    home = state.quota_index.membership.of(named, manifest.namespace)
    if home is None:
        return None
    shape = pods.shape(content.spec, content.status, manifest, state.cards, "spec")
    return home, dict(shape.requests)
