"""Decisions: the engine's only output.

A decision is carried out by the caller, and the cluster confirms it by an event. A `Bind` is
assumed: booked at once, so that the next decision counts it, until the pod is seen on its node or
`BindFailed` takes it back.
"""

from dataclasses import dataclass

from aliquot.engine.model.pod import Pod
from aliquot.engine.model.reasons import Reason, Refusal


@dataclass(frozen=True, slots=True)
class Bind:
    """Bind this pod to this node, and to these devices if it asks for any."""

    pod: Pod
    node: str
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    """Leave this pod pending, with the reason. Issued again only when the reason changes."""

    pod: Pod
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class Evict:
    """Evict this pod; `claimant` is the first pod of the claim it is preempted for, if any."""

    pod: Pod
    claimant: Pod | None
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Nominate:
    """Nominate this node for a pod: its capacity and quota are held until its victims are gone."""

    pod: Pod
    node: str


Decision = Bind | Wait | Evict | Nominate
