"""What comes and goes at one moment."""

from dataclasses import dataclass

from aliquot.dialects.core.manifest import Key, Manifest


@dataclass(frozen=True, slots=True)
class Change:
    """What is applied and deleted at one moment."""

    at: int
    apply: tuple[Manifest, ...] = ()
    delete: tuple[tuple[Key, str], ...] = ()
    """Keys, each with the place that asks for it."""
