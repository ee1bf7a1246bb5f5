"""A quota: one node of the quota tree, in the same form whatever dialect's object it came from."""

from dataclasses import dataclass, field

from aliquot.engine.model.checks import check, sorted_amounts
from aliquot.engine.model.quantity import Amounts

MOST_LEVELS = 64
"""Levels of a quota tree. What a pod uses is counted on every level above it, and turns are taken
on each, so depth costs every pod; organisations have ten levels at most."""
_MOST_NAMED = 3
"""Namespaces that a message names before it counts the rest: enough to tell whose quota it is."""
_LIST = "have the quota list this namespace"


@dataclass(frozen=True, slots=True)
class Quota:
    """A node of the quota tree. A resource missing from `min` is 0, from `max` unlimited."""

    name: str
    min: Amounts = ()
    max: Amounts = ()
    weight: Amounts = ()
    parent: str | None = None
    lend: bool = True
    namespaces: frozenset[str] = field(default_factory=frozenset)
    group: str = ""
    """Its lending group: its idle min is lent to quotas of that group only; if empty, to all."""
    is_parent: bool = False
    """Whether it holds other quotas, and no pods of its own."""
    unshared: bool = False
    """Whether it takes no part in sharing; what it uses is not shared among the others."""
    fallback: bool = False
    """Whether it takes the pods that belong to no other quota."""
    default_weight: int = 0
    """Its weight in every resource that `weight` does not name; 0 if it has none."""
    deserved: Amounts = ()
    """Its share, where the object fixes it instead of leaving it to weights."""
    reclaimable: bool = True
    """Whether others may reclaim what it uses beyond its share."""
    closed: bool = False
    """Whether no more pods may start in it."""
    priority: int = 0
    """Queues of higher priority take their turns first, whatever the shares."""
    open_to: frozenset[str] | None = None
    """The namespaces whose pods may name it; None for all."""
    tree: str = ""
    """The tree that it is in, if it is on the first level; below, it is in its parent's."""

    def __post_init__(self) -> None:
        for word in ("min", "max", "weight", "deserved"):
            found = sorted_amounts(getattr(self, word), f"quota {self.name}: {word}")
            object.__setattr__(self, word, found)
        if self.open_to is not None:
            check(self.open_to, frozenset, f"quota {self.name}: open_to")

    def is_open_to(self, namespace: str) -> bool:
        """May pods of this namespace name the quota as theirs?"""
        return self.open_to is None or namespace in self.open_to

    def refuse(self, namespace: str) -> str:
        """Why a pod of this namespace that names the quota is refused, and what would help."""
        named = sorted(self.open_to or ())
        more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        only = f"{', '.join(named[:_MOST_NAMED])}{more}" if named else "no namespace"
        add = "add the namespace to `systemNamespaces`" if self.unshared else _LIST
        return (
            f"quota {self.name} is not open to pods of namespace {namespace}, only to those of "
            f"{only}; name a quota of {namespace}, or {add}"
        )
