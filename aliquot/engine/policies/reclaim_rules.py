"""Who gives back under min and max: the rules that policies of borrowing quotas put together.

A claim within its quota's min takes from quotas above theirs, wherever their pods run, whatever
their priority, down to their floor, judged in the resources that are short. Inside its own quota a
claim takes from pods of lower priority. Pods without a quota are left alone by quota pods, and the
other way round, unless the knob `quotaless` says that they go first.
"""

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np

from aliquot.engine.books.quota_tree import OUTSIDE, ROOT
from aliquot.engine.columns import Vector
from aliquot.engine.model.objects import Pod
from aliquot.engine.model.quantity import text
from aliquot.engine.model.reasons import Reason, asked
from aliquot.engine.policies.capacity.borrowing import after_leaving, within_min
from aliquot.engine.policies.eligible import (
    CRITICAL,
    Eligible,
    Limits,
    Mask,
    Right,
    Rights,
    evictable_pods,
)
from aliquot.engine.policies.over_quota import MinSplit, Rows, managed_rows, split_at_min
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

Spare = Callable[[State, str, int], int]
"""What a quota can use of a resource without having to give it back at once."""

Rank = tuple[bool, bool]
"""Do only over-quota pods give, or any? Down to the floor, or only to min?"""

_GOES_FIRST = "makes way for a pod with a quota: pods without one go first"


class Claimant:
    """A claim that asks others to make way, and what the rules look at."""

    def __init__(
        self,
        state: State,
        claim: Claim,
        node_class: str | None,
        rights: Rights,
        now: int,
        spare: Spare,
    ) -> None:
        self.state = state
        self.claim = claim
        self.rights = rights
        self.charge: Vector = tuple(
            (row, amount)
            for row, amount in claim.charge(node_class)
            if state.tree.guaranteed(row) is not None
        )
        """What it is charged, in the resources that somebody guarantees."""
        self.evictable = evictable_pods(state, now)
        own = state.gangs.members.get(claim.gang or "", ())
        slots = state.running.slots
        self.evictable[[slots[uid] for uid in own if uid in slots]] = False
        self._spare = spare

    @property
    def quota(self) -> str:
        """The claim's quota: only claims with one ask others for their right."""
        assert self.claim.quota is not None
        return self.claim.quota

    @property
    def slot(self) -> int:
        """The quota's slot."""
        return self.state.tree.slots[self.quota]

    @cached_property
    def within_min(self) -> set[int]:
        """The resources in which its quota would stay within min."""
        return {row for row, n in self.charge if within_min(self.state, self.quota, row, n)}

    @property
    def borrows(self) -> bool:
        """Would its quota be above min in any of them?"""
        return len(self.within_min) < len(self.charge)

    @cached_property
    def quotaless(self) -> Mask:
        """Who goes before anybody else: with `quotaless: lowest`, pods without a quota."""
        outside: Mask = self.evictable & (
            self.state.running.quota == self.state.tree.slots[OUTSIDE]
        )
        if self.state.knobs.eviction.quotaless != "lowest":
            outside[:] = False
        return outside

    @property
    def lower_priority(self) -> Mask:
        """Who is of lower priority."""
        lower: Mask = self.evictable & (self.state.running.priority < self.claim.priority)
        return lower

    def explain(self, victim: Pod) -> str:
        """Who makes way for whom, and the two priorities."""
        if self.claim.quota is not None and self.state.tree.home(victim) is None:
            return _GOES_FIRST
        claimant = self.claim.pods[0]
        return (
            f"makes way for {claimant.path}: priority {victim.priority} against {claimant.priority}"
        )

    def ask_text(self, row: int) -> str:
        """What it asks for of a resource."""
        name = self.state.resources.names[row]
        return asked(self.claim.size, name, dict(self.charge).get(row, 0))

    def could_keep(self) -> bool:
        """Nobody goes for a claim that would have to give back at once.

        What it asks for beyond its min must be there once all others have what they are owed.
        """
        return all(
            row in self.within_min
            or after_leaving(self.state, row, self.slot) + amount
            <= self._spare(self.state, self.quota, row)
            for row, amount in self.charge
        )

    def exchange_rights(self) -> Rights:
        """For the same reason, inside a quota a pod replaces others; it does not grow by that.

        Unless it can keep what it grows by.
        """
        rights: Rights = {}
        for row, amount in self.charge:
            if row not in self.within_min:
                before = after_leaving(self.state, row, self.slot)
                keeps = max(before, self._spare(self.state, self.quota, row))
                if before + amount > keeps:
                    rights[Right(self.slot, row)] = before + amount - keeps
        return rights


def ranks(claimant: Claimant, by_policy: Iterator[list[Eligible]]) -> Iterator[list[Eligible]]:
    """What holds under every policy, and then what the policy offers to a claim with a quota."""
    settled = _critical_or_quotaless(claimant)
    if settled is not None:
        yield settled
        return
    yield from _quotaless_first(claimant)
    yield from by_policy


def _critical_or_quotaless(claimant: Claimant) -> list[Eligible] | None:
    """System-critical claims take from anybody, claims without a quota from their like."""
    state, claim = claimant.state, claimant.claim
    if claim.priority >= CRITICAL:
        return [Eligible(claimant.lower_priority, Reason.PREEMPTED, claimant.explain)]
    if claim.quota is None:
        outside = state.running.quota == state.tree.slots[OUTSIDE]
        return [Eligible(claimant.lower_priority & outside, Reason.PREEMPTED, claimant.explain)]
    return None


def _quotaless_first(claimant: Claimant) -> Iterator[list[Eligible]]:
    """From pods without a quota, if the knob says so."""
    if claimant.quotaless.any():
        yield [Eligible(claimant.quotaless, Reason.PREEMPTED, lambda _: _GOES_FIRST)]


def preempt_in_quota(claimant: Claimant) -> Iterator[list[Eligible]]:
    """From lower-priority pods of its own quota."""
    own = claimant.lower_priority & (claimant.state.running.quota == claimant.slot)
    if own.any() or claimant.quotaless.any():
        reason, rights = Reason.PREEMPTED_IN_QUOTA, claimant.exchange_rights()
        yield [Eligible(own | claimant.quotaless, reason, claimant.explain, rights=rights)]


def reclaim_for_min(
    claimant: Claimant, ranks: tuple[Rank, ...], by_label: bool = False
) -> Iterator[list[Eligible]]:
    """Reclaim for min: from quotas above theirs, in what is short.

    A pod is over-quota in what is short, or `by_label`, in anything that is guaranteed.
    """
    if not claimant.could_keep():
        return
    groups = short_rows(claimant)
    groups = {rows: nodes for rows, nodes in groups.items() if claimant.within_min.issuperset(rows)}
    borrowers = {rows: _Borrowers(claimant, rows, by_label) for rows in groups}
    if not claimant.quotaless.any() and not any(each.slots for each in borrowers.values()):
        return
    for only_over, down_to_floor in ranks:
        yield [
            borrowers[rows].eligible(nodes, only_over, down_to_floor)
            for rows, nodes in groups.items()
        ]


def short_rows(claimant: Claimant) -> dict[Rows, Mask]:
    """The nodes, by the resources that the claim is short of there or in the sum of min.

    Where only resources are short that nobody guarantees, by all that it asks for. None if it is
    short of its own max: no other quota can give that.
    """
    root = claimant.state.tree.slots[ROOT]
    if any(right.slot != root for right in claimant.rights):
        return {}
    in_sum = {right.row for right in claimant.rights}
    return by_shortage(claimant.state, claimant.claim, claimant.charge, in_sum)


def by_shortage(state: State, claim: Claim, charge: Vector, lacking: set[int]) -> dict[Rows, Mask]:
    """The nodes, by the resources that the claim is short of there, or lacks the right to.

    Where it is short of nothing that it is charged for, by all of that. A claim of several pods may
    need several nodes, so what it is short of holds for all of them.
    """
    if claim.size > 1:
        everywhere = np.ones(len(state.nodes.slots), dtype=bool)
        lacks = _short_of_all(state, claim, charge) | lacking or {row for row, _ in charge}
        return {tuple(sorted(lacks)): everywhere} if lacks else {}
    room = dict(claim.asks[0].room)
    count = len(state.nodes.slots)
    codes = np.zeros(count, dtype=np.int64)
    for bit, (row, _) in enumerate(charge):
        free = state.placement.free_soon(row, state.leaving.room)[:count]
        codes |= (free < room.get(row, 0)).astype(np.int64) << bit
    groups: dict[Rows, Mask] = {}
    for code in np.unique(codes):
        short = {row for bit, (row, _) in enumerate(charge) if int(code) >> bit & 1} | lacking
        rows = tuple(sorted(short or {row for row, _ in charge}))
        if rows:
            mask = codes == code
            groups[rows] = groups[rows] | mask if rows in groups else mask
    return groups


def _short_of_all(state: State, claim: Claim, charge: Vector) -> set[int]:
    """Of what all nodes together have too little for the pods of a claim."""
    short: set[int] = set()
    for row, _ in charge:
        wants = [amount for ask in claim.asks for each, amount in ask.room if each == row]
        free = state.placement.free_soon(row, state.leaving.room)[: len(state.nodes.slots)]
        free = free[state.placement.open_nodes(claim.asks[0])]
        if wants and int((np.maximum(free, 0) // max(wants)).sum()) < len(wants):
            short.add(row)
    return short


def lending_group_limits(claimant: Claimant, rows: Rows) -> Limits:
    """Other lending groups give only what they borrow from outside: the rest is their own."""
    state, tree = claimant.state, claimant.state.tree
    return {
        (slot, row): max(after_leaving(state, row, slot) - tree.min.get(row, slot), 0)
        for slot in tree.groups.values()
        for row in rows
        if slot not in tree.path(claimant.quota)
    }


class _Borrowers:
    """The quotas that use more than their min of what is short, and what each can give."""

    def __init__(self, claimant: Claimant, rows: Rows, by_label: bool) -> None:
        self.claimant = claimant
        self.state = claimant.state
        self.rows = rows
        tree = self.state.tree
        self._counted = managed_rows(self.state) if by_label else rows
        self._splits: dict[int, MinSplit] = {}
        self.slots = [
            slot
            for slot in self.state.running.quotas()
            if slot not in (claimant.slot, tree.slots[OUTSIDE])
            and any(self._above(slot, row) for row in rows)
        ]

    def eligible(self, nodes: Mask, only_over: bool, down_to_floor: bool) -> Eligible:
        """What they give. Beside them those who go first in any case."""
        claimant, running = self.claimant, self.state.running
        giving = np.zeros(len(self.state.tree.slots) + 1, dtype=bool)
        giving[self.slots] = True
        mask: Mask = claimant.evictable & giving[running.quota]
        limits = lending_group_limits(claimant, self.rows)
        over = np.zeros_like(mask)
        for slot in self.slots:
            split = self._split(slot)
            counted = (
                split
                if self._counted == self.rows
                else split_at_min(self.state, slot, self._counted)
            )
            over[counted.over] = True
            for row in self.rows:
                keeps = self.state.tree.min.get(row, slot)
                if down_to_floor or not self._above(slot, row):
                    keeps = split.floor[row]
                limits[slot, row] = split.total[row] - keeps
        return Eligible(
            (mask & over if only_over else mask) | claimant.quotaless,
            Reason.RECLAIMED_FOR_MIN,
            self._explain,
            nodes,
            limits,
        )

    def _above(self, slot: int, row: int) -> bool:
        return self._split(slot).total[row] > self.state.tree.min.get(row, slot)

    def _split(self, slot: int) -> MinSplit:
        found = self._splits.get(slot)
        if found is None:
            found = self._splits[slot] = split_at_min(self.state, slot, self.rows)
        return found

    def _explain(self, victim: Pod) -> str:
        """Who takes back what from whom, with the numbers; and the shortfall where there is one."""
        state, claimant = self.state, self.claimant
        giver = state.tree.home(victim)
        if giver is None:
            return _GOES_FIRST
        slot = state.tree.slots[giver]
        names = {state.resources.names[row]: row for row in self.rows}
        name = next((n for n in sorted(names) if self._above(slot, names[n])), min(names))
        row = names[name]
        charge = dict(state.ledger.entries[victim.uid].booking.charge)
        used = self._split(slot).total[row]
        left, low = used - charge.get(row, 0), state.tree.min.get(row, slot)
        short = f", which leaves it below its min by {text(name, low - left)}" if left < low else ""
        own = after_leaving(state, row, claimant.slot)
        return (
            f"quota {claimant.quota} takes back its min for {claimant.claim.pods[0].path}: "
            f"min {text(name, state.tree.min.get(row, claimant.slot))} {name}, "
            f"used {text(name, own)}, {claimant.ask_text(row)}; "
            f"quota {giver} uses {text(name, used)}, min {text(name, low)}{short}"
        )
