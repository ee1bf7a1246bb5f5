"""The victim search for a claim over several quotas: for the whole of it, or not at all.

Each quota has its own rules about whose pods may go, so each part of the claim searches by itself,
with the parts before it in place: their pods assumed, their victims as good as gone. Then every
part is searched once more with all others in place, as what another part frees may do for it too.
If one part finds no victims, none of the claim's parts gets any.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from aliquot.engine.fit import Fit
from aliquot.engine.policies.eligible import Right
from aliquot.engine.queue.claim import Claim
from aliquot.engine.reclaim.device_fit import Option
from aliquot.engine.reclaim.plan import Plan, Victim
from aliquot.engine.reclaim.victim_set import Cost
from aliquot.engine.state import State

_NOTHING: Cost = (0, 0, 0, 0, (0, 0))


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the claim, the nodes and devices of its pods, and its victims."""

    claim: Claim
    nodes: tuple[str, ...]
    devices: tuple[Option, ...]
    plan: Plan | None = None
    """None if it fits without victims."""

    @property
    def victims(self) -> tuple[Victim, ...]:
        """The pods that are to go for it."""
        return self.plan.victims if self.plan is not None else ()


class JointSearch:
    """Searches victims for claims over several quotas."""

    def __init__(self, state: State, fit: Fit, search: Callable[[Claim], Plan | None]) -> None:
        """`search` is that for a claim of one quota."""
        self._state = state
        self._fit = fit
        self._search = search

    def plan(self, claim: Claim) -> Plan | None:
        """The best plan for the whole claim, its parts taken in either order; None if none has one.

        The order matters: a part that takes the only node of another leaves that without.
        """
        found = [self._plan(claim, order) for order in (claim.parts, claim.parts[::-1])]
        plans = [plan for plan in found if plan is not None]
        return min(plans, key=lambda plan: (len(plan.victims), plan.key), default=None)

    def _plan(self, claim: Claim, order: tuple[Claim, ...]) -> Plan | None:
        with self._state.speculating():
            parts: list[_Part] = []
            for part in order:
                found = self._with(parts, part)
                if found is None:
                    return None
                parts.append(found)
            for at, each in enumerate(parts):
                if each.victims:
                    others = [*parts[:at], *parts[at + 1 :]]
                    again = self._with(others, each.claim)
                    if again is not None and len(again.victims) < len(each.victims):
                        parts[at] = again
            return _together(claim, parts)

    def _with(self, others: list[_Part], claim: Claim) -> _Part | None:
        """A part, with these others in place; None if it can neither start nor preempt."""
        with self._in_place(others):
            refusal = self._fit.assume(claim)
            if refusal is None:
                entries = self._state.ledger.entries
                bookings = [entries[uid].booking for uid in claim.uids()]
                nodes = tuple(str(booking.node) for booking in bookings)
                devices = (booking.gpu.devices if booking.gpu else () for booking in bookings)
                return _Part(claim, nodes, tuple(devices))
            plan = self._search(claim)
            return None if plan is None else _Part(claim, plan.nodes, plan.devices, plan)

    @contextmanager
    def _in_place(self, parts: list[_Part]) -> Iterator[None]:
        """Count the pods of these parts as assumed, and their victims as about to be gone."""
        state = self._state
        with state.speculating(), self._as_if_evicted([v for part in parts for v in part.victims]):
            for part in parts:
                for pod, node, devices in zip(
                    part.claim.pods, part.nodes, part.devices, strict=True
                ):
                    booking = state.bookings.booking(pod, part.claim.quota, node, devices)
                    state.ledger.assume(pod.uid, booking)
            yield

    @contextmanager
    def _as_if_evicted(self, victims: list[Victim]) -> Iterator[None]:
        """Count these pods as leaving, in no change log: they are no victims of another part."""
        bound, leaving, entries = self._state.bound_pods, self._state.leaving, {}
        for each in victims:
            entry = entries[each.pod.uid] = self._state.ledger.entries[each.pod.uid]
            bound.remove(each.pod.uid)
            leaving.add(each.pod.uid, entry)
        try:
            yield
        finally:
            for each in reversed(victims):
                leaving.remove(each.pod.uid)
                bound.set(each.pod, entries[each.pod.uid])


def _together(claim: Claim, parts: list[_Part]) -> Plan:
    """The plans of all parts as one, its nodes in the order of the claim's pods."""
    places = {
        uid: (node, devices)
        for part in parts
        for uid, node, devices in zip(part.claim.uids(), part.nodes, part.devices, strict=True)
    }
    victims = {victim.pod.uid: victim for part in parts for victim in part.victims}
    plans = [part.plan for part in parts if part.plan is not None]
    waived = frozenset[Right]().union(*(plan.waived for plan in plans))
    return Plan(
        tuple(places[uid][0] for uid in claim.uids()),
        tuple(places[uid][1] for uid in claim.uids()),
        tuple(victims.values()),
        max((plan.rank for plan in plans), default=0),
        max((plan.cost for plan in plans), default=_NOTHING),
        waived,
    )
