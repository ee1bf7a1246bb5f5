"""What the cluster shows of a pod's status and labels, as far as Aliquot writes them.

The intake reads it from every watched pod; `pod_status` compares it with what is to be written. It
is all that the output side knows of watched pods, and the output side never changes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

ShownRefusal = tuple[str, str]
"""Reason and message of the condition PodScheduled, if that is False."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class ShownStatus:
    """One pod as it was shown last; a new one replaces it whenever the watch shows the pod."""

    nominated: str | None = None
    refusal: ShownRefusal | None = None
    bound: bool = False
    capacity: Mapping[str, str] = field(default_factory=dict)
    """Its labels that say whether it is within its quota's min."""
