"""A tree of quotas with nodes of its own: which nodes, and how much of what they have it shares.

Quotas name the tree they are in; those that name none share what no tree takes for itself. A tree
may have several pools of nodes. Its pods stay on its nodes, and pods of quotas in no tree stay off
those that it has for itself: both are constraints like a pod's own, so that every rule about nodes
holds for these as well.
"""

from dataclasses import dataclass

from aliquot.engine.model.checks import check, sorted_amounts
from aliquot.engine.model.node import Node
from aliquot.engine.model.quantity import Amounts
from aliquot.engine.model.selector import Requirement, Selectors, selects
from aliquot.errors import ArgumentError


@dataclass(frozen=True, slots=True)
class NodePool:
    """The nodes that a selector selects; without one, an amount that no nodes stand for."""

    selector: tuple[Requirement, ...] | None = None
    """Empty, it selects every node."""
    amounts: Amounts = ()
    """What there is to share, where there is no selector."""
    ratio: tuple[int, int] = (1, 1)
    """How much of what the nodes have is shared: numerator and denominator, at most 1."""
    apart: bool = True
    """Is what it has taken out of what quotas without a tree share?"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "amounts", sorted_amounts(self.amounts, "pool: amounts"))
        over, under = self.ratio if len(self.ratio) == 2 else (0, 0)
        if not 0 < over <= under:
            raise ArgumentError(f"pool: ratio: {over}/{under} is not above 0 and at most 1")

    def selects(self, node: Node) -> bool:
        """Is this one of its nodes?"""
        return self.selector is not None and selects(self.selector, dict(node.labels))

    def part(self, amount: int) -> int:
        """How much of an amount is shared, in whole units."""
        over, under = self.ratio
        return amount if over == under else amount * over // under


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree of quotas that has pools of nodes of its own."""

    name: str
    pools: tuple[NodePool, ...] = ()

    def __post_init__(self) -> None:
        check(self.name, str, "tree: name")
        if not self.name:
            raise ArgumentError("tree: name: is empty, which is no tree's name")

    @property
    def within(self) -> Selectors:
        """The selectors that keep its pods on its nodes; empty where they may run anywhere."""
        found = tuple(pool.selector for pool in self.pools if pool.selector is not None)
        anywhere = len(found) < len(self.pools) or not all(found)
        return () if anywhere else found

    @property
    def taken(self) -> Selectors:
        """The selectors of the nodes that it has for itself."""
        found = (pool.selector for pool in self.pools if pool.apart)
        return tuple(selector for selector in found if selector is not None)
