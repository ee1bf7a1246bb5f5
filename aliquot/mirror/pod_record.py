"""What a simulation remembers of each pod that ever was."""

from dataclasses import dataclass
from typing import Literal

from aliquot.dialects.core.manifest import Key
from aliquot.dialects.tensor_fusion.quotas import NO_DEFAULTS, Defaults
from aliquot.dialects.volcano.keys import NO_GROUP_REF, GroupRef
from aliquot.engine import Pod
from aliquot.json import Body

Phase = Literal["Pending", "Running", "Succeeded", "Failed", "Evicted", "Deleted"]


@dataclass(slots=True)
class PodRecord:
    """A pod: as the engine knows it now, what became of it, and who replaces it if it is lost."""

    pod: Pod
    body: Body
    phase: Phase = "Pending"
    owner: Key | None = None
    asks_for: str | None = None
    """What it calls its quota, if it names one."""
    group_ref: GroupRef = NO_GROUP_REF
    """What it says about its gang and its queue."""
    priority: int = 0
    """Its own, whatever that of its gang."""
    defaults: Defaults = NO_DEFAULTS
    """What it asks for of GPUs where it does not say, as it was when it came."""
    duration: int | None = None
    started: int = 0

    @property
    def ends(self) -> int | None:
        """When it ends, if it runs and does not run for ever."""
        if self.phase != "Running" or self.duration is None:
            return None
        return self.started + self.duration

    @property
    def alive(self) -> bool:
        """Is it still there, waiting or running?"""
        return self.phase in ("Pending", "Running")
