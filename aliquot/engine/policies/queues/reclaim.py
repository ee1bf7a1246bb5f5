"""Reclaim between queues: from queues that use more than they deserve of what is short.

A claim reclaims only if its queue and all above it end within deserved, in what is short. Victim
queues give back in the order of turns read backwards (see `return_order`). They keep what they
deserve, of the resources that are short and of those that their own `deserved` names; if no other
set works, pods that hold something deserved are evicted too, but only pods that hold something
above deserved, and never below a guarantee.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from aliquot.engine.books.quota_tree import OUTSIDE, ROOT
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.quantity import text
from aliquot.engine.model.reasons import NO_ROOM, Reason, Refusal, ask_text
from aliquot.engine.policies import reclaim_rules
from aliquot.engine.policies.claimant import Claimant
from aliquot.engine.policies.eligible import (
    Account,
    Eligible,
    EvictionOrder,
    Limits,
    Mask,
    Right,
    kept_account,
)
from aliquot.engine.policies.over_quota import Rows
from aliquot.engine.policies.queues.claimant import QueueClaimant
from aliquot.engine.policies.queues.debts import debt_refusal
from aliquot.engine.policies.queues.deserved import Deserved
from aliquot.engine.policies.queues.drf import DominantShares
from aliquot.engine.policies.queues.gates import QueueGates
from aliquot.engine.policies.queues.preemption import QueuePreemption
from aliquot.engine.policies.queues.return_order import ReturnOrder
from aliquot.engine.policies.shares import CurrentShares
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State


class _Kept(NamedTuple):
    """What victim queues keep of what they deserve, in a rank; the first rank keeps most."""

    fixed: bool = False
    """Also what their own `deserved` names, of resources that are not short."""
    in_share: bool = True
    """Also of short resources in which they are not above deserved."""
    soft: bool = False
    """The last victim may take a queue below what it deserves."""


_RANKS = (_Kept(fixed=True), _Kept(), _Kept(soft=True), _Kept(in_share=False, soft=True))


class QueueReclaim(reclaim_rules.RankedReclaim):
    """Which pods of queues may be evicted.

    First pods of other queues, then, by the order of turns read backwards, pods of the claim's own
    queue (see `preemption`).
    """

    preempts_equals = True
    max_reason = Reason.QUEUE_RECLAIMED
    _gates: QueueGates

    def __init__(
        self,
        state: State,
        shares: CurrentShares[Deserved],
        drf: DominantShares,
        gates: QueueGates,
        order: ReturnOrder,
        priority_bands: bool,
    ) -> None:
        self._state = state
        self._shares = shares
        self._drf = drf
        self._gates = gates
        self._order = order
        self._priority_bands = priority_bands

    def by_rank(self, claimant: Claimant, node_class: str | None) -> Iterator[list[Eligible]]:
        """Within deserved, pods of queues above theirs; then pods of its own queue."""
        if self._gates.admission_gate(claimant.claim, node_class) is not None:
            return
        queue_claimant = QueueClaimant(
            claimant, node_class, self._shares.read(), self._drf, self._order
        )
        if self._gates.may_use_idle(claimant.claim) or not queue_claimant.above:
            yield from _between_queues(queue_claimant)
        yield from QueuePreemption(queue_claimant, self._priority_bands).eligible_victims()

    def gives_back(self, quota: str, claimant: Claimant) -> bool:
        """Not where `reclaimable` of its queue, or of one above that is not the claim's, is false.

        As `_OverDeserved` has it.
        """
        tree = self._state.tree
        own = tree.lineage(claimant.quota)
        return all(
            each.reclaimable for each in tree.ancestry(quota) if tree.slots[each.name] not in own
        )

    def name_no_victims(self, claim: Claim, refusal: Refusal) -> Refusal:
        """A claim that is owed what other queues use and do not give back waits for them.

        It waits for no node: an autoscaler need not buy one.
        """
        if refusal.reason not in NO_ROOM or not self._gates.is_owed(claim):
            return refusal
        return debt_refusal(self._state, self._shares.read(), claim, refusal)


def _between_queues(claimant: QueueClaimant) -> Iterator[list[Eligible]]:
    """Pods of queues above what they deserve, if the claim's own queue stays within that."""
    if _is_above_max(claimant) or claimant.above.issuperset(claimant.asked_for):
        return  # evicting pods of other queues does not help, or is not its right
    over_deserved = {rows: _OverDeserved(claimant, rows) for rows in claimant.nodes_by_shortage}
    over_deserved = {rows: each for rows, each in over_deserved.items() if each.slots}
    keeps_fixed = any(each.keeps_fixed for each in over_deserved.values())
    keeps_in_share = any(each.keeps_in_share for each in over_deserved.values())
    for kept in _RANKS:
        if (kept.fixed and not keeps_fixed) or not (kept.in_share or keeps_in_share):
            continue  # as the rank before it
        yield [
            each.eligible(claimant.nodes_by_shortage[rows], kept)
            for rows, each in over_deserved.items()
        ]


def _is_above_max(claimant: QueueClaimant) -> bool:
    return any(
        claimant.deserved.after_leaving(row, claimant.slot) + amount
        > claimant.state.tree.max.get(row, claimant.slot)
        for row, amount in claimant.charge
    )


def _used_by_others(claimant: QueueClaimant, row: int, amount: int) -> int:
    """How much of this amount other queues use or are guaranteed: what is not idle of it."""
    deserved = claimant.deserved
    in_use = deserved.after_leaving(
        row, claimant.state.tree.slots[ROOT]
    ) + deserved.unused_guarantees(row, claimant.lineage)
    return in_use + amount - deserved.total[row]


class _OverDeserved:
    """The queues that use more than they deserve of what is short."""

    def __init__(self, claimant: QueueClaimant, rows: Rows) -> None:
        self._claimant = claimant
        self._state = claimant.state
        self._deserved = claimant.deserved
        self._rows = rows
        contested = claimant.contested(rows)
        asks = {row: amount for row, amount in claimant.charge if row in contested}
        taken = {row: _used_by_others(claimant, row, amount) for row, amount in asks.items()}
        self._needed = {row: amount for row, amount in taken.items() if amount > 0}
        """What other queues must free of what the claim takes above deserved."""
        others = set(claimant.state.bound_pods.quotas()) - {
            claimant.slot,
            claimant.state.tree.slots[OUTSIDE],
        }
        self.slots = [slot for slot in sorted(others) if self._is_over_deserved(slot, contested)]

    def _is_over_deserved(self, slot: int, contested: set[int]) -> bool:
        """Is it above deserved, and each queue above it that is not above the claim's queue?

        Where the claim itself goes above deserved in a resource that is not idle, only queues that
        deserve none of that resource count.
        """
        quotas, names = self._state.tree.quotas, self._state.tree.slots.names
        return all(
            quotas[str(names[each])].reclaimable
            and any(self._over(each, row) > 0 for row in self._rows)
            and not any(self._deserved.get(row, each) for row in contested)
            for each in self._accounts(slot)
        )

    def _accounts(self, slot: int) -> list[int]:
        lineage = self._state.tree.lineage(str(self._state.tree.slots.names[slot]))
        return [each for each in lineage if each not in self._claimant.lineage]

    def _over(self, slot: int, row: int) -> int:
        return self._deserved.after_leaving(row, slot) - self._deserved.get(row, slot)

    @cached_property
    def _all_accounts(self) -> list[int]:
        """The victim queues, and those above them that are not above the claim's queue."""
        return sorted({account for slot in self.slots for account in self._accounts(slot)})

    @cached_property
    def keeps_fixed(self) -> bool:
        """Does the `deserved` of any of them name resources that are not short?"""
        return any(set(self._deserved.fixed(each)) - set(self._rows) for each in self._all_accounts)

    @cached_property
    def keeps_in_share(self) -> bool:
        """Is any of them not above deserved in any of the short resources?"""
        return any(self._over(each, row) <= 0 for each in self._all_accounts for row in self._rows)

    @cached_property
    def _pods(self) -> Mask:
        """The pods that hold something above deserved, of their queue and of each one above it.

        With them the other pods of their gangs, which can only be evicted as a whole.
        """
        running = self._state.bound_pods
        mask: Mask = np.zeros_like(self._claimant.evictable)
        evictable = self._claimant.evictable_in(self._rows)
        for slot in self.slots:
            these = evictable & (running.quota == slot)
            for account in self._accounts(slot):
                rows = [row for row in self._rows if self._over(account, row) > 0]
                these &= (running.charge.data[rows] > 0).any(axis=0)
            mask |= these
        gangs = running.gang[mask & (running.gang >= 0)]
        if len(gangs):
            in_slots = np.isin(running.quota, self.slots)
            mask |= evictable & in_slots & np.isin(running.gang, np.unique(gangs))
        return mask

    @cached_property
    def _order(self) -> EvictionOrder:
        return self._claimant.order.of(self._pods)

    def eligible(self, nodes: Mask, kept: _Kept) -> Eligible:
        """Their pods, with the limits of what they keep."""
        root = self._state.tree.slots[ROOT]
        limits, soft = Limits(), set[tuple[Account, int]]()
        for each in self._all_accounts:
            over = {row: n for row in self._rows if (n := self._over(each, row)) > 0}
            limits |= {(each, row): amount for row, amount in over.items()}
            soft |= {(each, row) for row in over if kept.soft}
            if kept.in_share:
                limits |= {(each, row): 0 for row in self._rows if row not in over}
            if kept.fixed:
                others = self._deserved.fixed(each).keys() - set(self._rows)
                limits |= {(each, row): max(self._over(each, row), 0) for row in others}
            limits |= self._guarantee_limits(each)
        return Eligible(
            self._pods,
            Reason.QUEUE_RECLAIMED,
            self._explain,
            nodes,
            limits,
            soft=frozenset(soft),
            rights={Right(root, row): amount for row, amount in self._needed.items()},
            waived=frozenset(Right(self._claimant.slot, row) for row in self._claimant.above),
            order=self._order,
        )

    def _guarantee_limits(self, slot: int) -> Limits:
        """Limits that keep a queue's guarantee, as long as it has it."""
        quota = self._state.tree.quotas[str(self._state.tree.slots.names[slot])]
        spare = {
            row: self._deserved.after_leaving(row, slot) - low
            for row, low in self._state.resources.vector(quota.min)
        }
        return {(kept_account(slot), row): amount for row, amount in spare.items() if amount >= 0}

    def _explain(self, victim: Pod) -> str:
        """The message of a reclaim: deserved and use of both queues."""
        claimant, deserved, names = self._claimant, self._deserved, self._state.resources.names
        victim_queue = str(self._state.tree.quota_of(victim))
        slot = self._state.tree.slots[victim_queue]
        by_name = {names[row]: row for row in self._rows}
        over = (name for name in sorted(by_name) if self._over(slot, by_name[name]) > 0)
        name = next(over, min(by_name))
        row, path = by_name[name], claimant.claim.pods[0].path
        return (
            f"queue {claimant.queue} takes back what it deserves for {path}: "
            f"deserves {text(name, deserved.get(row, claimant.slot))} {name}, "
            f"used {text(name, deserved.after_leaving(row, claimant.slot))}, "
            f"{ask_text(claimant.claim.size, name, dict(claimant.charge).get(row, 0))}; "
            f"queue {victim_queue} deserves {text(name, deserved.get(row, slot))}, "
            f"uses {text(name, deserved.after_leaving(row, slot))}"
        )
