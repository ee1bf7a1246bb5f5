"""Decisions: the engine's only output.

A decision is carried out by the caller, and the cluster confirms it by an event. A `Bind` is
assumed: booked at once, so that the next decision counts it, until the pod is seen on its node or
`BindFailed` takes it back. A preemption is one decision, the `Nominate` of its claim: the victims
are part of it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from aliquot.engine.model.pod import Pod
from aliquot.engine.model.reasons import Reason, Refusal
from aliquot.engine.model.volumes import VolumeBinding


@dataclass(frozen=True, slots=True)
class Bind:
    """Bind this pod to this node, and to these devices if it asks for any.

    Before it is bound, its unbound claims get these volumes.
    """

    pod: Pod
    node: str
    devices: tuple[str, ...] = ()
    volumes: tuple[VolumeBinding, ...] = ()


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
    """Evict the victims, and nominate a node for each pod of a claim.

    Capacity and quota are held for the claim until its victims are gone. Without victims, it waits
    for pods that are leaving already, or is a gang with a reservation.
    """

    pods: tuple[Pod, ...]
    nodes: tuple[str, ...]
    """The node of each pod, in the order of `pods`."""
    victims: tuple[Evict, ...] = ()


Decision = Bind | Wait | Evict | Nominate
"""An `Evict` that stands alone is for no claim; the others are `victims` of a `Nominate`."""


def binds_and_evictions(decisions: Iterable[Decision]) -> Iterator[Bind | Evict]:
    """All bindings and evictions, in the order of the decisions."""
    for decision in decisions:
        if isinstance(decision, Bind | Evict):
            yield decision
        elif isinstance(decision, Nominate):
            yield from decision.victims


def evictions(decisions: Iterable[Decision]) -> Iterator[Evict]:
    """All evictions, those of victims included, in the order of the decisions."""
    return (each for each in binds_and_evictions(decisions) if isinstance(each, Evict))
