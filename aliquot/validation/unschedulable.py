"""Warnings for pods that can never start, even in an empty cluster.

A pod can start in a state if some node could hold it when empty and the max of its quota and of all
ancestors allows it. A pod that can start in no state after its arrival is reported. Without nodes,
as when quotas are checked alone, only the quotas' max is considered.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from aliquot.dialects.core import pods
from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.manifest import Key, Manifest
from aliquot.dialects.core.nodes import node
from aliquot.dialects.core.objects import PodWire
from aliquot.dialects.core.pod_templates import PodTemplateView, template_views
from aliquot.dialects.kep9.quotas import KINDS
from aliquot.dialects.quota_index import QuotaIndex
from aliquot.dialects.volcano import gangs, queues
from aliquot.engine import Node, Shape
from aliquot.validation import object_rules as rules
from aliquot.validation.history import State

_KINDS_OF_LIMITS = {"Node", "Namespace", *KINDS, queues.KIND, gangs.KIND}


@dataclass(slots=True)
class PendingPod:
    """A pod, or the pods of a workload, that could start in no state so far."""

    manifest: Manifest
    view: PodTemplateView
    shape: Shape
    came: int
    why_not: str | None = None


@dataclass(slots=True)
class UnschedulablePods:
    """The pods that could start in no state so far, and the nodes and quotas of now."""

    open: dict[tuple[Key, str], PendingPod] = field(default_factory=dict)
    _nodes: list[Node] = field(default_factory=list)
    _quota_index: QuotaIndex = field(default_factory=QuotaIndex)
    _why_not_by_shape: dict[tuple[str | None, Shape], str | None] = field(default_factory=dict)

    def check_state(self, state: State) -> None:
        """Add the pods of a state's change, and remove those that could start."""
        came = {
            (each.key, found.view.at): found
            for each in state.applied
            for found in _pending_pods(each, state)
        }
        self.open.update(came)
        changed = state.changed_kinds & _KINDS_OF_LIMITS
        if changed:
            self._read_limits(state)
        for key, each in list((self.open if changed else came).items()):
            if state.valid.get(key[0]) is each.manifest:
                named = state.requested_quota(each.manifest, each.view)
                home = self._quota_index.membership.of(named, each.manifest.namespace)
                each.why_not = self._why_not(home, each.shape)
                if each.why_not is None and self._nodes:
                    del self.open[key]

    def findings(self) -> Iterator[Finding]:
        """A warning for each pod and workload that could start in no state."""
        for each in self.open.values():
            if each.why_not is not None:
                warning = rules.can_never_start(each.manifest, each.view.spec_field, each.why_not)
                yield replace(warning, at=each.came)

    def _read_limits(self, state: State) -> None:
        known = state.valid.values()
        nodes = (each for each in known if each.kind == "Node" and state.knows_all_nodes)
        self._nodes = [node(each, state.cards) for each in nodes]
        self._quota_index = state.quota_index
        self._why_not_by_shape = {}

    def _why_not(self, home: str | None, shape: Shape) -> str | None:
        """Why a pod cannot start; None if it can. Computed once for pods of one quota and shape."""
        if (home, shape) not in self._why_not_by_shape:
            bounds = self._quota_index.ancestry(home) if home is not None else ()
            above = (rules.above_max(shape, each, self._nodes) for each in bounds)
            why_not = next((reason for reason in above if reason is not None), None)
            if why_not is None and self._nodes:
                why_not = rules.too_large(shape, self._nodes)
            self._why_not_by_shape[home, shape] = why_not
        return self._why_not_by_shape[home, shape]


def _pending_pods(manifest: Manifest, state: State) -> Iterator[PendingPod]:
    """The pods of an object that wait to start: none that run or have ended."""
    content = manifest.content
    status = content.status if isinstance(content, PodWire) else None
    for view in template_views(manifest):
        if view.spec is None or view.spec.node_name or pods.finished(status):
            continue
        shape = pods.shape(view.spec, status, manifest, state.cards, view.spec_field)
        yield PendingPod(manifest, view, shape, state.change.at)
