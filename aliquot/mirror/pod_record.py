"""The record of a pod: what the mirror knows of it besides the engine's pod."""

from dataclasses import dataclass
from typing import Literal

from aliquot.dialects.core.manifest import Key
from aliquot.dialects.tensor_fusion.quotas import NO_DEFAULTS, Defaults
from aliquot.dialects.topology import Nearness
from aliquot.dialects.volcano.keys import NO_GROUP_REF, GroupRef
from aliquot.engine import NO_RULES, Pod, PodRules
from aliquot.json import Body

Phase = Literal["Pending", "Running", "Succeeded", "Failed", "Evicted", "Deleted"]


@dataclass(slots=True)
class PodRecord:
    """A pod as the engine knows it, its phase, its owner, and what decides its quota and gang."""

    pod: Pod
    body: Body
    phase: Phase = "Pending"
    owner: Key | None = None
    named_quota: str | None = None
    """The bare name of the quota that its label names, if it does."""
    group_ref: GroupRef = NO_GROUP_REF
    """The PodGroup, queue and task that it names."""
    nearness: Nearness | None = None
    """How near to others it asks to run, by its own annotations."""
    priority: int = 0
    """Its own priority; `pod.priority` is at least its gang's."""
    preemptible: bool = True
    """May it be evicted, by its own word? `pod.preemptible` is false also if its gang may not."""
    own_rules: PodRules = NO_RULES
    """The rules that it states itself; `pod.rules` may have the default topology spread besides."""
    defaults: Defaults = NO_DEFAULTS
    """The GPU requests of its namespace when it came, for a pod that states none."""
    duration: int | None = None
    started: int = 0
    arrived: int = 0
    """When it came in a simulation."""
    ended: int | None = None
    """When it ended in a simulation."""
    grace: int = 0
    """How long it terminates once it is evicted, in a simulation."""
    gone_at: int | None = None
    """When it is gone in a simulation, if it was evicted there; `pod.gone_by` is when it should."""
    evicted: bool = False
    """Was it evicted in a simulation, so that it terminates or is gone?"""

    @property
    def ends(self) -> int | None:
        """When it ends: after its duration, if it runs, or at the end of its grace period."""
        gone = self.pod.gone_by if self.gone_at is None else self.gone_at
        moments = [gone] if gone is not None else []
        if self.phase == "Running" and self.duration is not None:
            moments.append(self.started + self.duration)
        return min(moments, default=None)

    @property
    def alive(self) -> bool:
        """Does it wait or run?"""
        return self.phase in ("Pending", "Running")
