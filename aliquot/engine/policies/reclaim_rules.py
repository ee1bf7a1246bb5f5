"""The rules of reclaim and preemption that policies are put together from.

*Reclaim for min*: a claim within its quota's min takes from quotas above theirs, on any node and
whatever the priority of their pods, down to their floor, in the resources that are short.
*Preemption in the quota*: a claim takes from lower-priority pods of its own quota. Pods without a
quota are neither victims of pods with one nor the other way round, unless the knob `quotaless:
lowest` makes them the first victims.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from aliquot.engine.books.quota_tree import OUTSIDE, ROOT
from aliquot.engine.columns import Vector, distinct
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.quantity import LIMIT, text
from aliquot.engine.model.reasons import Reason
from aliquot.engine.policies import above_max, model_reclaim
from aliquot.engine.policies.claimant import Claimant
from aliquot.engine.policies.eligible import (
    Eligible,
    Limits,
    Mask,
    Rights,
)
from aliquot.engine.policies.interface import Gates, Reclaim
from aliquot.engine.policies.over_quota import MinSplit, Rows, split_at_min
from aliquot.engine.policies.usage import after_leaving
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

Rank = tuple[bool, bool]
"""Are only over-quota pods eligible, or any? Down to the quota's floor, or only to its min?"""


class RankedReclaim(Reclaim):
    """The reclaim of every policy: the ranks that hold under each, then the policy's own."""

    _state: State
    _gates: Gates
    max_reason = Reason.RECLAIMED_FOR_MIN
    """For which pods above the max of their quota are evicted."""

    def eligible_victims(
        self, claim: Claim, node_class: str | None, rights: Rights, now: int
    ) -> Iterator[list[Eligible]]:
        """The ranks of every policy, then those of `by_rank`."""
        shields = self._gates.shields
        claimant = Claimant(self._state, claim, node_class, rights, now, self.spare, shields)
        return _ranks(claimant, self._for_quota(claimant, node_class))

    def _for_quota(self, claimant: Claimant, node_class: str | None) -> Iterator[list[Eligible]]:
        """For a claim with a quota: what others use above max, if it is owed; then by policy.

        Where quotas have mins by model, these come before the rules of the policy.
        """
        if not self._state.model_mins:
            yield from self._above_max(claimant, node_class)
            yield from self.by_rank(claimant, node_class)
            return
        kept = model_reclaim.kept_of_models(self._state, claimant.claim)
        yield from _keeping(kept, self._above_max(claimant, node_class))
        owed = self._gates.shields.bound
        yield from model_reclaim.eligible_victims(
            claimant, node_class, owed, self.max_reason, self.gives_back
        )
        yield from _keeping(kept, self.by_rank(claimant, node_class))

    def gives_back(self, quota: str, claimant: Claimant) -> bool:
        """Do pods of a quota make way for others within their mins at all?"""
        return True

    def _above_max(self, claimant: Claimant, node_class: str | None) -> Iterator[list[Eligible]]:
        state, claim = self._state, claimant.claim
        if above_max.excess(state, tuple(row for row, _ in claim.charge(node_class))):
            short, bound = self.owed_shortages(claimant, node_class), self._gates.shields.bound
            yield from above_max.eligible_victims(
                state, claim, short, claimant.evictable_in, bound, self.max_reason
            )

    def owed_shortages(self, claimant: Claimant, node_class: str | None) -> dict[Rows, Mask]:
        """The nodes, by what the claim is short of there; those where it is owed that."""
        if not self._gates.is_owed(claimant.claim):
            return {}
        charge, lacking = claimant.claim.charge(node_class), {r.row for r in claimant.rights}
        return by_shortage(self._state, claimant.claim, charge, lacking)

    @abstractmethod
    def by_rank(self, claimant: Claimant, node_class: str | None) -> Iterator[list[Eligible]]:
        """The policy's own ranks, for a claim with a quota."""

    def spare(self, quota: str, row: int) -> int:
        """What a quota can use of a resource without being reclaimed from at once."""
        return LIMIT


def _keeping(kept: Limits, ranks: Iterator[list[Eligible]]) -> Iterator[list[Eligible]]:
    """The same ranks, within these limits as well."""
    for rank in ranks:
        yield [replace(each, limits={**each.limits, **kept}) for each in rank]


def _ranks(claimant: Claimant, by_policy: Iterator[list[Eligible]]) -> Iterator[list[Eligible]]:
    """The ranks that hold under every policy, then the policy's for a claim with a quota."""
    settled = _critical_or_quotaless(claimant)
    if settled is not None:
        yield settled
        return
    yield from _quotaless_first(claimant)
    yield from by_policy


def _critical_or_quotaless(claimant: Claimant) -> list[Eligible] | None:
    """For a system-critical claim, any pod of lower priority; for one without a quota, its like."""
    state, claim = claimant.state, claimant.claim
    if claim.is_critical(state.knobs.system_namespaces):
        return [Eligible(claimant.lower_priority, Reason.PREEMPTED, claimant.explain)]
    if claim.quota is None:
        outside = state.bound_pods.quota == state.tree.slots[OUTSIDE]
        return [Eligible(claimant.lower_priority & outside, Reason.PREEMPTED, claimant.explain)]
    return None


def _quotaless_first(claimant: Claimant) -> Iterator[list[Eligible]]:
    """The rank of pods without a quota, with `quotaless: lowest`."""
    if claimant.quotaless.any():
        yield [Eligible(claimant.quotaless, Reason.PREEMPTED, claimant.explain)]


def preempt_in_quota(claimant: Claimant) -> Iterator[list[Eligible]]:
    """Lower-priority pods of the claim's own quota."""
    own = claimant.lower_priority & (claimant.state.bound_pods.quota == claimant.slot)
    if own.any() or claimant.quotaless.any():
        reason, rights = Reason.PREEMPTED_IN_QUOTA, claimant.exchange_rights()
        yield [Eligible(own | claimant.quotaless, reason, claimant.explain, rights=rights)]


def reclaim_for_min(
    claimant: Claimant, ranks: tuple[Rank, ...], by_label: bool = False
) -> Iterator[list[Eligible]]:
    """Pods of quotas above their min in what is short, for a claim within its quota's min.

    A pod counts as over-quota in the resources that are short; with `by_label`, in all resources
    that some quota's min names, as its label does.
    """
    nodes_by_rows = owed_by_min(claimant)
    borrowers = {rows: _Borrowers(claimant, rows, by_label) for rows in nodes_by_rows}
    if not claimant.quotaless.any() and not any(each.slots for each in borrowers.values()):
        return
    for only_over, down_to_floor in ranks:
        yield [
            borrowers[rows].eligible(nodes, only_over, down_to_floor)
            for rows, nodes in nodes_by_rows.items()
        ]


def owed_by_min(claimant: Claimant) -> dict[Rows, Mask]:
    """The nodes, by what the claim is short of there, where its quota's min covers that."""
    if not claimant.could_keep():
        return {}
    return {
        rows: nodes
        for rows, nodes in short_rows(claimant).items()
        if (named := claimant.guaranteed(rows)) and claimant.within_min.issuperset(named)
    }


def short_rows(claimant: Claimant) -> dict[Rows, Mask]:
    """The nodes, by the resources that the claim is short of there or in the sum of min.

    Where only resources are short that no min names, by all that the claim is charged. Empty if it
    is above its quota's own max: evicting pods of other quotas does not help.
    """
    root = claimant.state.tree.slots[ROOT]
    if any(right.slot != root for right in claimant.rights):
        return {}
    in_sum = {right.row for right in claimant.rights}
    return by_shortage(claimant.state, claimant.claim, claimant.charge, in_sum)


def by_shortage(state: State, claim: Claim, charge: Vector, lacking: set[int]) -> dict[Rows, Mask]:
    """The nodes, by the resources that the claim is short of there, or is `lacking` the right to.

    Where it is short of nothing that it is charged, by all of that. A claim of several pods may
    need several nodes, so what it is short of is worked out once over all nodes.
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
    nodes_by_rows: dict[Rows, Mask] = {}
    for code in distinct(codes).tolist():
        short = {row for bit, (row, _) in enumerate(charge) if code >> bit & 1} | lacking
        rows = tuple(sorted(short or {row for row, _ in charge}))
        if rows:
            mask = codes == code
            nodes_by_rows[rows] = nodes_by_rows[rows] | mask if rows in nodes_by_rows else mask
    return nodes_by_rows


def _short_of_all(state: State, claim: Claim, charge: Vector) -> set[int]:
    """The resources of which all open nodes together have too little for the claim's pods."""
    short: set[int] = set()
    for row, _ in charge:
        wants = [amount for ask in claim.asks for each, amount in ask.room if each == row]
        free = state.placement.free_soon(row, state.leaving.room)[: len(state.nodes.slots)]
        free = free[state.placement.open_nodes(claim.asks[0])]
        if wants and int((np.maximum(free, 0) // max(wants)).sum()) < len(wants):
            short.add(row)
    return short


def lending_group_limits(claimant: Claimant, rows: Rows) -> Limits:
    """Limits on other lending groups: only what a group borrows from outside it is reclaimed."""
    state, tree = claimant.state, claimant.state.tree
    return {
        (slot, row): max(after_leaving(state, row, slot) - tree.min.get(row, slot), 0)
        for slot in tree.groups.values()
        for row in rows
        if slot not in tree.path(claimant.quota)
    }


class _Borrowers:
    """The quotas that use more than their min of what is short, and what each can lose."""

    def __init__(self, claimant: Claimant, rows: Rows, by_label: bool) -> None:
        self.claimant = claimant
        self.state = claimant.state
        self.rows = rows
        tree = self.state.tree
        self._counted = self.state.tree.guaranteed_rows() if by_label else rows
        self._splits: dict[int, MinSplit] = {}
        guaranteed = claimant.guaranteed(rows)
        self.slots = [
            slot
            for slot in self._candidates(guaranteed)
            if slot not in (claimant.slot, tree.slots[OUTSIDE])
            and any(self._uses(slot, row) and self._above(slot, row) for row in guaranteed)
        ]

    def _candidates(self, rows: Rows) -> list[int]:
        """The quotas, by slot, that may use more than their min of any of these resources.

        Of very many quotas few do. What evictable pods of a quota hold is part of what it uses,
        which is known of all quotas at once: but for overdue victims, and for bookings that are
        tried without some of the pods.
        """
        if self.state.leaving.overdue or self.state.ledger.differs:
            return self.state.bound_pods.quotas()
        count = len(self.state.tree.slots)
        above = np.zeros(count, dtype=bool)
        for row in rows:
            used = self.state.ledger.used.data[row, :count]
            above |= (used > self.state.tree.min.data[row, :count]) | (used >= LIMIT)
        found: list[int] = np.flatnonzero(above).tolist()
        return found

    def eligible(self, nodes: Mask, only_over: bool, down_to_floor: bool) -> Eligible:
        """Their eligible pods, and with `quotaless: lowest` the pods without a quota."""
        claimant, running = self.claimant, self.state.bound_pods
        affected = np.zeros(len(self.state.tree.slots) + 1, dtype=bool)
        affected[self.slots] = True
        mask: Mask = claimant.evictable_in(self.rows) & affected[running.quota]
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
                kept = self.state.tree.min.get(row, slot)
                if down_to_floor or not self._above(slot, row):
                    kept = split.floor[row]
                limits[slot, row] = split.total[row] - kept
        return Eligible(
            (mask & over if only_over else mask) | claimant.quotaless,
            Reason.RECLAIMED_FOR_MIN,
            self._explain,
            nodes,
            limits,
        )

    def _uses(self, slot: int, row: int) -> bool:
        """Does the quota use any of the resource? Most quotas use few of very many."""
        return bool(self.state.ledger.used.get(row, slot) or self.state.leaving.overdue)

    def _above(self, slot: int, row: int) -> bool:
        return self._split(slot).total[row] > self.state.tree.min.get(row, slot)

    def _split(self, slot: int) -> MinSplit:
        found = self._splits.get(slot)
        if found is None:
            found = self._splits[slot] = split_at_min(self.state, slot, self.rows)
        return found

    def _explain(self, victim: Pod) -> str:
        """The message of a reclaim: both quotas' numbers, and the shortfall where there is one."""
        state, claimant = self.state, self.claimant
        victim_quota = state.tree.quota_of(victim)
        if victim_quota is None:
            return claimant.explain(victim)
        slot = state.tree.slots[victim_quota]
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
            f"quota {victim_quota} uses {text(name, used)}, min {text(name, low)}{short}"
        )
