"""What the engine decides: its only output.

A decision is a wish until the cluster confirms it by an event. `Bind` is booked at once, so that
the next decision sees it; `BindFailed` takes it back.
"""

from dataclasses import dataclass

from aliquot.engine.model.pod import Pod
from aliquot.engine.model.reasons import Reason, Refusal


@dataclass(frozen=True, slots=True)
class Bind:
    """Start this pod on this node, on these devices if it asks for any."""

    pod: Pod
    node: str
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    """Let this pod wait, and say why. Decided again only when the reason changes."""

    pod: Pod
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class Evict:
    """End this pod; `claimant` is the first pod of the claim it makes way for, if any."""

    pod: Pod
    claimant: Pod | None
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Nominate:
    """Keep room on this node, and right, for a pod until its victims are gone."""

    pod: Pod
    node: str


Decision = Bind | Wait | Evict | Nominate
