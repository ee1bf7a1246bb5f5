"""Evictions after a quota's bounds were lowered below what it uses (`onQuotaLowered: evict`).

Pods younger than `minRuntime` are left for a later cycle. A quota that is new to the engine gives
back what it uses above its max, too: its max may have been lowered before a restart, and what was
not given back by then must not be forgotten. Whether its min was lowered cannot be known.

What counts is what its pods use: room and right that are held, as by a reservation, evict none.
"""

from collections.abc import Iterator

from aliquot.engine.books.quota_tree import ROOT
from aliquot.engine.model.decisions import Evict
from aliquot.engine.model.quantity import text
from aliquot.engine.model.reasons import Reason
from aliquot.engine.policies import Policy
from aliquot.engine.policies.eligible import Mask, Right, Rights, evictable_pods
from aliquot.engine.policies.over_quota import split_at_min
from aliquot.engine.policies.usage import staying
from aliquot.engine.reclaim.eviction_units import Draws, EvictionUnit, EvictionUnits
from aliquot.engine.reclaim.victim_set import PricedUnit, Requirements, choose, price
from aliquot.engine.state import State


class LoweredBounds:
    """The quotas that are above a lowered bound."""

    def __init__(self, state: State, policy: Policy) -> None:
        self._state = state
        self._policy = policy
        self._lowered = state.changes.lowered.cursor(deciding=True)
        self._created = state.changes.created.cursor(deciding=True)
        self.still_above: dict[str, bool] = {}
        """Quotas above their bounds after the last cycle; whether their min was lowered as well."""

    def evictions(self, now: int) -> Iterator[list[Evict]]:
        """The evictions from each quota above a lowered bound, to be booked before the next."""
        state = self._state
        known = dict.fromkeys(self._created.read(), False) | self.still_above
        known |= dict.fromkeys(self._lowered.read(), True)
        self.still_above = {}
        if state.knobs.eviction.on_quota_lowered != "evict":
            return
        for name in sorted(known.keys() & state.tree.quotas.keys()):
            excess = self._excess(name, known[name])
            if not excess:
                continue
            evictable = evictable_pods(state, now) & self._policy.gates.shields.exposed()
            yield _evictions(state, name, excess, evictable)
            if self._excess(name, known[name]):
                self.still_above[name] = known[name]

    def _excess(self, quota: str, lowered: bool) -> Rights:
        above_max = _above_max(self._state, quota)
        return above_max | self._policy.reclaim.excess(quota) if lowered else above_max


def _evictions(state: State, quota: str, excess: Rights, evictable: Mask) -> list[Evict]:
    """Evict the least important pods of the quota that bring it within its bounds.

    Over-quota pods first. Where too few pods are evictable now, those that are.
    """
    slot = state.tree.slots[quota]
    ranked = [
        uid for uid in state.bound_pods.ranked(slot) if evictable[state.bound_pods.slots[uid]]
    ]
    over = set(
        split_at_min(state, slot, tuple(sorted({right.row for right in excess}))).over.tolist()
    )
    eviction_units = EvictionUnits(state)
    those = frozenset(ranked)
    units = [
        _priced(state, eviction_unit, excess) for eviction_unit in eviction_units.of(ranked, those)
    ]
    slots = state.bound_pods.slots
    first = [each for each in units if over.issuperset(slots[uid] for uid in each.uids)]
    needs = _needs(state, units, excess)
    these = first if _needs(state, first, excess) == needs else units
    chosen = _choose(state, these, needs, eviction_units.limits)
    words = {uid: _words(state, quota, each, excess) for each in chosen for uid in each.uids}
    return [Evict(state.pods[uid], None, Reason.QUOTA_LOWERED, words[uid]) for uid in words]


def _needs(state: State, units: list[PricedUnit], excess: Rights) -> dict[object, int]:
    """The excess, as far as these units can free it."""
    uids = {uid for each in units for uid in each.uids}
    charges = [dict(state.ledger.entries[uid].booking.charge) for uid in uids]
    can = {right: sum(charge.get(right.row, 0) for charge in charges) for right in excess}
    return {right: min(n, can[right]) for right, n in excess.items() if min(n, can[right]) > 0}


def _choose(
    state: State, units: list[PricedUnit], needs: dict[object, int], limits: Draws
) -> list[PricedUnit]:
    paths = {path for each in units for budgets in each.budgets for path in budgets}
    left = {path: state.budgets.left(path) for path in sorted(paths)}
    return (choose(units, Requirements(needs, limits, left)) or []) if needs else []


def _priced(state: State, eviction_unit: EvictionUnit, excess: Rights) -> PricedUnit:
    pods = [state.pods[uid] for uid in eviction_unit.uids]
    charges = [dict(state.ledger.entries[uid].booking.charge) for uid in eviction_unit.uids]
    frees: dict[object, int] = {
        right: sum(charge.get(right.row, 0) for charge in charges) for right in excess
    }
    budgets = tuple(state.budgets.on(pod) for pod in pods)
    return price(
        pods, state.bound_pods.name(eviction_unit.uids[0]), frees, eviction_unit.draws, budgets
    )


def _words(state: State, quota: str, unit: PricedUnit, excess: Rights) -> str:
    """The message of an eviction: which bound, and the numbers."""
    right = next(right for right in excess if unit.frees.get(right))
    name, used = state.resources.names[right.row], staying(state, right.row, right.slot)
    most = text(name, used - excess[right])
    return (
        f"all quotas together: sum of min {most} {name}, used {text(name, used)}"
        if right.slot == state.tree.slots[ROOT]
        else f"quota {quota}: max {most} {name}, used {text(name, used)}"
    )


def _above_max(state: State, quota: str) -> Rights:
    """What the quota uses above its max."""
    slot = state.tree.slots[quota]
    found: Rights = {}
    for row in range(len(state.resources)):
        over = staying(state, row, slot) - state.tree.max.get(row, slot)
        if over > 0:
            found[Right(slot, row)] = over
    return found
