"""Which pods can never start, whatever becomes of the others.

A pod has prospects in a state if some node could hold it when empty and its quota's max lets it be.
One that has none in any state after it came is worth a warning. Where there are no nodes, as when
somebody checks quotas alone, nothing is known and nothing is said.
"""

from collections.abc import Iterable, Iterator
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

_BEAR_ON_PROSPECTS = {"Node", "Namespace", *KINDS, queues.KIND, gangs.KIND}


@dataclass(slots=True)
class Prospect:
    """A pod, or the pods of a workload, that could start in no state so far."""

    manifest: Manifest
    view: PodTemplateView
    shape: Shape
    came: int
    why_not: str | None = None


@dataclass(slots=True)
class Prospects:
    """All of those, and what they depend on, as it stands now."""

    open: dict[tuple[Key, str], Prospect] = field(default_factory=dict)
    _nodes: list[Node] = field(default_factory=list)
    _forest: QuotaIndex = field(default_factory=QuotaIndex)
    _answers: dict[tuple[str | None, Shape], str | None] = field(default_factory=dict)

    def look_at(self, state: State) -> None:
        """Take in what came, and let go of what could start."""
        came = {
            (each.key, found.view.at): found
            for each in state.applied
            for found in _prospects(each, state)
        }
        self.open.update(came)
        changed = state.changed_kinds & _BEAR_ON_PROSPECTS
        if changed:
            self._take_over(state)
        for key, each in list((self.open if changed else came).items()):
            if state.sound.get(key[0]) is each.manifest:
                named = state.requested_quota(each.manifest, each.view)
                home = self._forest.membership.of(named, each.manifest.namespace)
                each.why_not = self._why_not(home, each.shape)
                if each.why_not is None and self._nodes:
                    del self.open[key]

    def _take_over(self, state: State) -> None:
        known = state.sound.values()
        nodes = (each for each in known if each.kind == "Node" and state.knows_all_nodes)
        self._nodes = [node(each, state.cards) for each in nodes]
        self._forest = state.quota_index
        self._answers = {}

    def _why_not(self, home: str | None, shape: Shape) -> str | None:
        """Why it cannot start as things are; pods alike share the answer."""
        if (home, shape) not in self._answers:
            bounds = self._forest.ancestry(home) if home is not None else ()
            above = (rules.above_max(shape, each, self._nodes) for each in bounds)
            why_not = next((words for words in above if words is not None), None)
            if why_not is None and self._nodes:
                why_not = rules.too_large(shape, self._nodes)
            self._answers[home, shape] = why_not
        return self._answers[home, shape]


def findings(states: Iterable[State]) -> Iterator[Finding]:
    """A warning for each pod and workload that has no prospects."""
    prospects = Prospects()
    for state in states:
        prospects.look_at(state)
    for each in prospects.open.values():
        if each.why_not is not None:
            warning = rules.can_never_start(each.manifest, each.view.spec_field, each.why_not)
            yield replace(warning, at=each.came)


def _prospects(manifest: Manifest, state: State) -> Iterator[Prospect]:
    """What waits to start; nothing for what runs already, has ended, or makes no pods."""
    content = manifest.content
    status = content.status if isinstance(content, PodWire) else None
    for view in template_views(manifest):
        if view.spec is None or view.spec.node_name or pods.finished(status):
            continue
        shape = pods.shape(view.spec, status, manifest, state.cards, view.spec_field)
        yield Prospect(manifest, view, shape, state.change.at)
