"""Who gives back under min and max: the rule of KEP-9, per resource that is short.

A claim within its quota's min takes from quotas above theirs, wherever their pods run, whatever
their priority, down to their floor. A claim above its min, or one that finds nobody there, takes
from lower-priority pods of its own quota. Pods without a quota are left alone by quota pods, and
the other way round, unless the knob `quotaless` says that they go first.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.claim import Claim
from aliquot.engine.columns import Vector
from aliquot.engine.objects import Pod
from aliquot.engine.offer import CRITICAL, Mask, Offer, Right, Rights, evictable
from aliquot.engine.policies.borrowing import soon, within_min
from aliquot.engine.quantity import text
from aliquot.engine.reasons import Reason
from aliquot.engine.state import State
from aliquot.engine.tree import OUTSIDE, ROOT

Rows = tuple[int, ...]
Spare = Callable[[State, str, int], int]
"""What a quota can use of a resource without having to give it back at once."""

_GOES_FIRST = "makes way for a pod with a quota: pods without one go first"


def offers(
    state: State,
    claim: Claim,
    node_class: str | None,
    rights: Rights,
    now: int,
    spare: Spare,
) -> Iterator[list[Offer]]:
    """Ranks of offers, the best first."""
    may_go, running = evictable(state, now), state.running
    outside = running.quota == state.tree.slots[OUTSIDE]
    lower = running.priority < claim.priority
    if claim.priority >= CRITICAL:
        yield [Offer(may_go & lower, Reason.PREEMPTED, _outranked(claim))]
        return
    if claim.quota is None:
        yield [Offer(may_go & outside & lower, Reason.PREEMPTED, _outranked(claim))]
        return
    first = may_go & outside
    if state.knobs.eviction.quotaless == "lowest":
        yield [Offer(first, Reason.PREEMPTED, lambda _: _GOES_FIRST)]
    else:
        first[:] = False
    if _may_keep(state, claim, node_class, spare):
        yield from _from_others(state, claim, node_class, rights, may_go, first)
    own = may_go & (running.quota == state.tree.slots[claim.quota]) & lower
    if own.any() or first.any():
        in_exchange = _in_exchange(state, claim, node_class, spare)
        reason, explain = Reason.PREEMPTED_IN_QUOTA, _outranked(claim)
        yield [Offer(own | first, reason, explain, rights=in_exchange)]


def _may_keep(state: State, claim: Claim, node_class: str | None, spare: Spare) -> bool:
    """Nobody goes for a claim that would have to give back at once.

    What it asks for beyond its min must be there once all others have what they are owed.
    """
    assert claim.quota is not None
    slot = state.tree.slots[claim.quota]
    return all(
        within_min(state, claim.quota, row, amount)
        or soon(state, row, slot) + amount <= spare(state, claim.quota, row)
        for row, amount in claim.charge(node_class)
        if state.tree.guaranteed(row) is not None
    )


def _in_exchange(state: State, claim: Claim, node_class: str | None, spare: Spare) -> Rights:
    """For the same reason, inside a quota one pod replaces others; the quota does not grow by it.

    Unless it can keep what it grows by.
    """
    assert claim.quota is not None
    slot = state.tree.slots[claim.quota]
    rights: Rights = {}
    for row, amount in claim.charge(node_class):
        if state.tree.guaranteed(row) is None or within_min(state, claim.quota, row, amount):
            continue
        before = soon(state, row, slot)
        short = before + amount - max(before, spare(state, claim.quota, row))
        if short > 0:
            rights[Right(slot, row)] = short
    return rights


def _outranked(claim: Claim) -> "Outranked":
    return Outranked(claim.pods[0])


@dataclass(frozen=True, slots=True)
class Outranked:
    """Words for a victim of lower priority."""

    claimant: Pod

    def __call__(self, victim: Pod) -> str:
        """Who makes way for whom, and the two priorities."""
        return (
            f"makes way for {self.claimant.path}: "
            f"priority {victim.priority} against {self.claimant.priority}"
        )


def _from_others(
    state: State, claim: Claim, node_class: str | None, rights: Rights, may_go: Mask, first: Mask
) -> Iterator[list[Offer]]:
    """Reclaim: over-quota pods; then any pods of quotas above min; then pods that straddle it."""
    charge = claim.charge(node_class)
    groups = _short_rows(state, claim, charge, rights)
    if not groups:
        return
    givers = {rows: _Givers(state, claim, charge, rows) for rows in groups}
    if not first.any() and not any(each.slots for each in givers.values()):
        return
    for only_over, down_to_floor in ((True, False), (False, False), (False, True)):
        yield [
            givers[rows].offer(may_go, first, nodes, only_over, down_to_floor)
            for rows, nodes in groups.items()
        ]


def _short_rows(state: State, claim: Claim, asked: Vector, rights: Rights) -> dict[Rows, Mask]:
    """Which nodes the claim may clear by reclaim, by the resources that are short there.

    It may where it stays within min in all that is short. Where only resources are short that no
    quota guarantees, it must be within min in all it asks for.
    """
    charge = [(r, a) for r, a in asked if state.tree.guaranteed(r) is not None]
    room = dict(claim.asks[0].room)
    entitled = {row for row, n in charge if within_min(state, str(claim.quota), row, n)}
    in_sum = {right.row for right in rights if right.slot == state.tree.slots[ROOT]}
    if any(right.slot != state.tree.slots[ROOT] for right in rights) or not in_sum <= entitled:
        return {}
    count = len(state.nodes.slots)
    codes = np.zeros(count, dtype=np.int64)
    for bit, (row, _) in enumerate(charge):
        free = state.placement.free_soon(row, state.leaving.room)[:count]
        codes |= (free < room.get(row, 0)).astype(np.int64) << bit
    groups: dict[Rows, Mask] = {}
    for code in np.unique(codes):
        short = {row for bit, (row, _) in enumerate(charge) if int(code) >> bit & 1} | in_sum
        rows = tuple(sorted(short or {row for row, _ in charge}))
        if rows and set(rows) <= entitled:
            mask = codes == code
            groups[rows] = groups[rows] | mask if rows in groups else mask
    return groups


@dataclass(frozen=True, slots=True)
class Walk:
    """A walk over a quota's pods, the most important first, adding up until min is passed."""

    ranked: list[str]
    low: tuple[int, ...]
    floor: dict[int, int]
    """What the pods before that point hold: the in-quota ones."""
    over: NDArray[np.int64]
    """The pods from there on, by their slot among the bound ones."""
    total: dict[int, int]
    """What all of them hold. Pods that are not confirmed yet cannot be asked, and do not count."""


def _walk(state: State, ranked: list[str], rows: Rows, low: tuple[int, ...]) -> Walk:
    """Add up in Python's own integers: no sum of amounts is too large for them."""
    slots = np.array([state.running.slots[uid] for uid in ranked], dtype=np.int64)
    sums = [np.cumsum(state.running.charge.data[row][slots].astype(object)) for row in rows]
    passed = [total > bound for total, bound in zip(sums, low, strict=True)]
    first = min((int(each.argmax()) for each in passed if each.any()), default=len(ranked))
    floor = {row: int(s[first - 1]) if first else 0 for row, s in zip(rows, sums, strict=True)}
    total = {row: int(s[-1]) if len(s) else 0 for row, s in zip(rows, sums, strict=True)}
    return Walk(ranked, low, floor, slots[first:], total)


class _Givers:
    """The quotas that use more than their min of what is short, and what each can give."""

    def __init__(self, state: State, claim: Claim, charge: Vector, rows: Rows) -> None:
        self.state = state
        self.claim = claim
        self.charge = dict(charge)
        self.rows = rows
        assert claim.quota is not None
        own = state.tree.slots[claim.quota]
        outside = state.tree.slots[OUTSIDE]
        self.slots = [
            slot
            for slot in state.running.quotas()
            if slot not in (own, outside) and any(self._above(slot, row) for row in rows)
        ]

    def offer(
        self, may_go: Mask, first: Mask, nodes: Mask, only_over: bool, down_to_floor: bool
    ) -> Offer:
        """What they give: over-quota pods only, or any; down to min, or to the floor.

        Beside them those who go first in any case.
        """
        running = self.state.running
        giving = np.zeros(len(self.state.tree.slots) + 1, dtype=bool)
        giving[self.slots] = True
        mask: Mask = may_go & giving[running.quota]
        limits: dict[tuple[int, int], int] = {}
        over = np.zeros_like(may_go)
        for slot in self.slots:
            walk = self._walk(slot)
            over[walk.over] = True
            for row in self.rows:
                keeps = self.state.tree.min.get(row, slot)
                if down_to_floor or not self._above(slot, row):
                    keeps = walk.floor[row]
                limits[slot, row] = self._soon(slot, row) - keeps
        return Offer(
            (mask & over if only_over else mask) | first,
            Reason.RECLAIMED_FOR_MIN,
            self._explain,
            nodes,
            limits,
        )

    def _soon(self, slot: int, row: int) -> int:
        """What the pods of a quota hold, those that leave aside."""
        return self._walk(slot).total[row]

    def _above(self, slot: int, row: int) -> bool:
        return self._soon(slot, row) > self.state.tree.min.get(row, slot)

    def _walk(self, slot: int) -> "Walk":
        """The walk over a quota's pods; kept until one of them comes or goes, or min changes."""
        low = tuple(self.state.tree.min.get(row, slot) for row in self.rows)
        ranked = self.state.running.ranked(slot)
        kept = self.state.walks.get((slot, self.rows))
        if isinstance(kept, Walk) and kept.ranked is ranked and kept.low == low:
            return kept
        walk = _walk(self.state, ranked, self.rows, low)
        self.state.walks[slot, self.rows] = walk
        return walk

    def _explain(self, victim: Pod) -> str:
        """Who takes back what from whom, with the numbers; and the shortfall where there is one."""
        state, claimant = self.state, self.claim.pods[0]
        row = self.rows[0]
        name = state.resources.names[row]
        own = state.tree.slots[str(self.claim.quota)]
        giver = state.tree.home(victim)
        if giver is None:
            return _GOES_FIRST
        slot = state.tree.slots[giver]
        asks = self.charge.get(row, 0)
        charge = dict(state.ledger.entries[victim.uid].booking.charge)
        left = self._soon(slot, row) - charge.get(row, 0)
        low = state.tree.min.get(row, slot)
        short = f", which leaves it below its min by {text(name, low - left)}" if left < low else ""
        return (
            f"quota {self.claim.quota} takes back its min for {claimant.path}: "
            f"min {text(name, state.tree.min.get(row, own))} {name}, "
            f"used {text(name, self._soon(own, row))}, pod asks {text(name, asks)}; "
            f"quota {giver} uses {text(name, self._soon(slot, row))}, min {text(name, low)}{short}"
        )
