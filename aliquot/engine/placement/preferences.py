"""What each node is by a pod's node constraints: refused, or how much preferred.

Many shapes share one `NodeConstraints`, most of them the empty one, so columns over the nodes are
kept for each `NodeConstraints`. They are computed for all nodes at once, from the columns of their
labels; where few nodes have changed since, for these alone.
"""

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.nodes import Nodes
from aliquot.engine.model.node import NodeConstraints, Taint
from aliquot.engine.model.selector import Selectors, Term
from aliquot.engine.placement.constraints import (
    NodeRefusal,
    node_refusal,
    preference,
    required_names,
    taint_refusal,
)
from aliquot.engine.placement.node_labels import NodeLabels

_FEW_NODES = 8
"""Up to so many changed nodes are looked at one by one: that takes as long as a pass over all."""
_MOST_KEPT = 1_024
"""Columns that are kept: at 5,000 nodes 120 KB each, 120 MB in all."""
OPEN = 0
_Column = NDArray[np.int64]


class NodeFit:
    """Columns over the nodes, for one `NodeConstraints`."""

    __slots__ = ("codes", "preferred", "soft_taints")

    def __init__(self, count: int) -> None:
        self.codes = np.full(count, NodeRefusal.GONE, dtype=np.int64)
        """`OPEN`, or why the pod may not run there."""
        self.preferred = np.zeros(count, dtype=np.int64)
        """The sum of the weights of the preferred terms that the node matches."""
        self.soft_taints = np.zeros(count, dtype=np.int64)
        """How many PreferNoSchedule taints the pod does not tolerate."""

    def lengthen(self, count: int) -> None:
        """Add nodes, which are gone until they are looked at."""
        more = count - len(self.codes)
        if more > 0:
            none = np.zeros(more, dtype=np.int64)
            self.codes = np.append(self.codes, none + NodeRefusal.GONE)
            self.preferred = np.append(self.preferred, none)
            self.soft_taints = np.append(self.soft_taints, none)

    @property
    def prefers(self) -> bool:
        """Is any node preferred to another?"""
        return bool(self.preferred.any() or self.soft_taints.any())


class NodePreferences:
    """Columns over the nodes for each `NodeConstraints`."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._kept: dict[NodeConstraints, tuple[int, NodeFit]] = {}
        self._labels = NodeLabels()
        self._read = 0
        self._taints: dict[tuple[Taint, ...], dict[int, None]] = {}
        """The slots of nodes with these taints."""
        self._taints_of: dict[int, tuple[Taint, ...]] = {}
        self._groups: list[tuple[tuple[Taint, ...], _Column]] = []
        """The same, with the slots as arrays."""

    def of(self, constraints: NodeConstraints) -> NodeFit:
        """The columns, up to date."""
        read, fit = self._kept.pop(constraints, (0, None))
        count = len(self._nodes.slots)
        if fit is None or read != self._nodes.version or len(fit.codes) != count:
            fit = self._refreshed(constraints, read, fit)
        self._kept[constraints] = (self._nodes.version, fit)
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return fit

    def _refreshed(self, constraints: NodeConstraints, read: int, fit: NodeFit | None) -> NodeFit:
        """The columns, with the nodes that have changed since they were read."""
        changed = [] if fit is None else self._nodes.changed_since(read)
        if fit is None or len(changed) > _FEW_NODES:
            return self._computed(constraints)
        fit.lengthen(len(self._nodes.slots))
        for slot in changed:
            self._look_at(fit, constraints, slot)
        return fit

    def _computed(self, constraints: NodeConstraints) -> NodeFit:
        """The columns, of all nodes."""
        self._refresh_labels()
        labels, fit = self._labels, NodeFit(self._labels.count)
        open_to, reach = self.selected(constraints), self._reach(constraints)
        for weight, term in constraints.preferred:
            fit.preferred += weight * labels.matching(term)
        for taints, slots in self._groups:
            refusal, soft = taint_refusal(taints, constraints.tolerations)
            here = np.where(open_to[slots], OPEN, NodeRefusal.SELECTOR)
            if reach is not None:
                here[~reach[slots]] = NodeRefusal.TREE
            fit.codes[slots] = here if refusal is None else refusal
            fit.soft_taints[slots] = soft
        names = required_names(constraints)
        if names is not None:
            others = fit.codes != NodeRefusal.GONE
            others[[self._nodes.slots[each] for each in names if each in self._nodes.slots]] = False
            fit.codes[others] = NodeRefusal.SELECTOR
        fit.codes[list(self._nodes.deleted)] = NodeRefusal.DELETED
        fit.preferred[(fit.codes == NodeRefusal.GONE) | (fit.preferred < 0)] = 0
        return fit

    def selected(self, constraints: NodeConstraints) -> NDArray[np.bool_]:
        """The nodes that a node selector and a required affinity admit, whatever their taints."""
        self._refresh_labels()
        labels = self._labels
        open_to = np.ones(labels.count, dtype=bool)
        for key, value in constraints.selector:
            open_to &= labels.with_value(key, value)
        if constraints.required is not None:
            open_to &= labels.matching_any(constraints.required)
        reach = self._reach(constraints)
        return open_to if reach is None else open_to & reach

    def _reach(self, constraints: NodeConstraints) -> NDArray[np.bool_] | None:
        """The nodes that trees of quotas leave to such pods; None for all (see `in_reach`)."""
        if not (constraints.within or constraints.beyond):
            return None
        found = np.ones(self._labels.count, dtype=bool)
        if constraints.within:
            found = self._selected_by_any(constraints.within)
        if constraints.beyond and required_names(constraints) is None:
            found &= ~self._selected_by_any(constraints.beyond)
        return found

    def _selected_by_any(self, selectors: Selectors) -> NDArray[np.bool_]:
        found = np.zeros(self._labels.count, dtype=bool)
        for each in selectors:
            found |= self._labels.matching(Term(each)) if each else True
        return found

    def tolerated(self, constraints: NodeConstraints) -> NDArray[np.bool_]:
        """The nodes whose taints are tolerated, whatever their labels.

        As in kube-scheduler, a node that is cordoned or not ready has the taint that goes with it
        only where that is written.
        """
        self._refresh_labels()
        found = np.zeros(self._labels.count, dtype=bool)
        for taints, slots in self._groups:
            found[slots] = taint_refusal(_written(taints), constraints.tolerations)[0] is None
        return found

    def _refresh_labels(self) -> None:
        """Bring the columns of labels and taints up to date."""
        for slot in self._nodes.changed_since(self._read):
            node, old = self._nodes.at(slot), self._taints_of.pop(slot, None)
            self._labels.put(slot, node)
            if old is not None:
                del self._taints[old][slot]
                if not self._taints[old]:
                    del self._taints[old]
            if node is not None:
                self._taints_of[slot] = node.taints
                self._taints.setdefault(node.taints, {})[slot] = None
        if self._read != self._nodes.version:
            found = self._taints.items()
            self._groups = [(each, np.fromiter(slots, dtype=np.int64)) for each, slots in found]
        self._labels.count, self._read = len(self._nodes.slots), self._nodes.version

    def _look_at(self, fit: NodeFit, constraints: NodeConstraints, slot: int) -> None:
        """Bring one node up to date."""
        node = self._nodes.at(slot)
        refusal = NodeRefusal.GONE if node is None else node_refusal(constraints, node)
        fit.codes[slot] = OPEN if refusal is None else refusal
        taints = () if node is None else node.taints
        fit.soft_taints[slot] = taint_refusal(taints, constraints.tolerations)[1]
        fit.preferred[slot] = 0 if node is None else max(preference(constraints, node), 0)


def _written(taints: tuple[Taint, ...]) -> tuple[Taint, ...]:
    """The taints that the node itself states."""
    return tuple(each for each in taints if not each.implied)
