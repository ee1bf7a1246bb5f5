"""Volumes: what pods mount, and where it can be mounted.

Values only: what is bound, reserved and chosen is in `books.volumes`, which nodes that leaves is
decided in `placement.volumes`.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VolumeUse:
    """A volume of a pod: the claim (`namespace/name`) that it mounts."""

    claim: str


@dataclass(frozen=True, slots=True)
class VolumeBinding:
    """What becomes of an unbound claim (`namespace/name`) when its pod starts on a node.

    It is bound to this volume; without one, a volume is provisioned for it, near the node.
    """

    claim: str
    volume: str | None = None
