"""A quota: a node of the quota tree, the same whatever object of whatever dialect it came from."""

from dataclasses import dataclass, field

from aliquot.engine.model.quantity import Amounts


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
    """Its lending group: what is idle of min is lent inside it only. Without one, to everybody."""
    is_parent: bool = False
    """Does it hold no pods of its own, but other quotas?"""
    unshared: bool = False
    """Does it stand outside the shares? What it uses is not there for the others to share."""
    fallback: bool = False
    """Does it take the pods that belong nowhere else?"""
    default_weight: int = 0
    """Its weight in every resource of which `weight` says nothing; 0 where it has none."""
    deserved: Amounts = ()
    """Its share, where somebody fixed it instead of leaving it to weights."""
    reclaimable: bool = True
    """Can others take back what it uses beyond its share?"""
    closed: bool = False
    """Does it let nobody start any more?"""
    priority: int = 0
    """Whose turn comes first, whatever the shares."""
