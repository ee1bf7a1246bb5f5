"""Warnings about profiles that never select a node, or select nodes that another tree has as well.

Over all nodes that there ever are, since nodes may come later than the profile. Nothing is said
where some node cannot be read.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.manifest import Key, Manifest
from aliquot.dialects.core.nodes import node
from aliquot.dialects.koordinator.profiles import KIND
from aliquot.dialects.koordinator.tree_rules import check_pools
from aliquot.dialects.nos.cards import Cards
from aliquot.validation.history import State


@dataclass(slots=True)
class NodePools:
    """The profiles and the nodes so far."""

    _objects: dict[Key, Manifest] = field(default_factory=dict)
    _knows_all_nodes: bool = True

    def add_state(self, state: State) -> None:
        """Take the objects of a state's change."""
        self._knows_all_nodes &= state.knows_all_nodes
        for each in state.applied:
            if each.kind in ("Node", KIND):
                self._objects[each.key] = each

    def findings(self) -> Iterator[Finding]:
        """All warnings about the profiles so far."""
        found = self._objects.values()
        profiles = [each for each in found if each.kind == KIND]
        if profiles and self._knows_all_nodes:
            nodes = [node(each, Cards()) for each in found if each.kind == "Node"]
            yield from check_pools(profiles, nodes)
