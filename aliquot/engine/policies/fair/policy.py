"""nos elastic quotas: as `capacity`, and what is borrowed is shared fairly, by preemption.

Everybody is guaranteed a part of what is idle in proportion to min. A claim that would borrow
within its quota's part takes from pods that are over-quota in quotas which borrow more than theirs.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from aliquot.engine.books.quota_tree import NO_GROUP, OUTSIDE
from aliquot.engine.model.importance import Order
from aliquot.engine.model.knobs import Knobs
from aliquot.engine.model.objects import Pod
from aliquot.engine.model.quantity import text
from aliquot.engine.model.reasons import Reason, Refusal
from aliquot.engine.policies import reclaim_rules
from aliquot.engine.policies.capacity.borrowing import Borrowing, after_leaving, exact_sum
from aliquot.engine.policies.eligible import Eligible, Mask, Rights
from aliquot.engine.policies.over_quota import Rows, managed_rows, split_at_min
from aliquot.engine.queue.claim import Claim
from aliquot.engine.report.summary import QuotaSummary
from aliquot.engine.state import State

_RANKS = ((True, False), (True, True))


class Fair(Borrowing):
    """The policy of quotas that share what is idle in proportion to their min."""

    def __init__(self, knobs: Knobs) -> None:
        super().__init__(knobs.fair.borrow)
        self.order = Order(*knobs.fair.over_quota_order)

    def spare(self, state: State, quota: str, row: int) -> int:
        """Nobody takes back what a quota is sure of, once others have what they ask for."""
        return max(
            super().spare(state, quota, row),
            GuaranteedShares(state, row, asked=True).entitlement(quota),
        )

    def explain_no_victims(self, state: State, claim: Claim, refusal: Refusal) -> str:
        """How much a quota may take back, where that is too little for a claim that borrows."""
        if refusal.reason is not Reason.BORROWING_EXHAUSTED or refusal.resource is None:
            return ""
        assert claim.quota is not None
        name = refusal.resource
        row, slot = state.resources.row(name), state.tree.slots[claim.quota]
        sure, low = (
            GuaranteedShares(state, row).entitlement(claim.quota),
            state.tree.min.get(row, slot),
        )
        asks = dict(claim.charge(None)).get(row, 0)
        if not low < after_leaving(state, row, slot) + asks > sure:
            return ""
        words = f"min {text(name, low)} and {text(name, sure - low)} of what is idle"
        return f"; its quota may take back up to {text(name, sure)} {name} ({words})"

    def complete(self, state: State, summaries: list[QuotaSummary]) -> list[QuotaSummary]:
        """Their share, and the part of what is idle that each is sure of."""
        shared = super().complete(state, summaries)
        parts = {
            state.resources.names[row]: GuaranteedShares(state, row) for row in managed_rows(state)
        }
        return [
            replace(
                each,
                guaranteed={
                    name: parts[name].guaranteed(each.name) for name in each.used if name in parts
                },
            )
            for each in shared
        ]

    def eligible_victims(
        self, state: State, claim: Claim, node_class: str | None, rights: Rights, now: int
    ) -> Iterator[list[Eligible]]:
        """Within min, from over-quota pods of quotas above theirs.

        Above it, first from its own quota, then from those who borrow more than their part.
        """
        claimant = reclaim_rules.Claimant(state, claim, node_class, rights, now, self.spare)
        return reclaim_rules.ranks(claimant, _eligible_victims(claimant))


def _eligible_victims(claimant: reclaim_rules.Claimant) -> Iterator[list[Eligible]]:
    yield from reclaim_rules.reclaim_for_min(claimant, _RANKS, by_label=True)
    if claimant.borrows:
        yield from reclaim_rules.preempt_in_quota(claimant)
        yield from _fair_share(claimant)


class GuaranteedShares:
    """What is idle of a resource, and the part of it that each quota is sure of.

    By min, among all who may borrow it: what a lending group leaves idle is for its own quotas.
    What is `asked` for and not used yet is idle, unless it is to count as used.
    """

    def __init__(self, state: State, row: int, asked: bool = False) -> None:
        self._tree = state.tree
        self._row = row
        leaves, self._groups = state.tree.leaf_slots, state.tree.leaf_groups
        self._mins = state.tree.min.data[row][leaves]
        used = state.ledger.used.data[row][leaves] - state.leaving.charge.data[row][leaves]
        idle = np.maximum(self._mins - used, 0)
        for more in (state.ledger.held, *([state.ledger.wanted] if asked else [])):
            idle -= np.minimum(more.data[row][leaves], idle)
        self._idle = idle
        self._pools: dict[int, tuple[int, int]] = {}

    def guaranteed(self, quota: str) -> int:
        """The quota's part, in whole units."""
        low = self._tree.min.get(self._row, self._tree.slots[quota])
        group = self._tree.groups.get(self._tree.quotas[quota].group)
        pools = [self._pool(NO_GROUP), *([] if group is None else [self._pool(group)])]
        return sum(idle * low // whole for idle, whole in pools if whole)

    def entitlement(self, quota: str) -> int:
        """What a quota can have at any time: its min, and its part of what is idle."""
        return self._tree.min.get(self._row, self._tree.slots[quota]) + self.guaranteed(quota)

    def _pool(self, group: int) -> tuple[int, int]:
        """What is idle for those who may borrow it, and the sum of their min."""
        if group not in self._pools:
            inside = self._groups == group
            whole = self._mins if group == NO_GROUP else self._mins[inside]
            self._pools[group] = exact_sum(self._idle[inside]), exact_sum(whole)
        return self._pools[group]


def _fair_share(claimant: reclaim_rules.Claimant) -> Iterator[list[Eligible]]:
    """From over-quota pods of quotas beyond their part, as long as they are beyond it."""
    state = claimant.state
    within = all(
        after_leaving(state, row, claimant.slot) + amount
        <= GuaranteedShares(state, row).entitlement(claimant.quota)
        for row, amount in claimant.charge
    )
    if not within:
        return
    groups = reclaim_rules.short_rows(claimant)
    borrowers = {rows: _OverGuaranteed(claimant, rows) for rows in groups}
    if any(each.slots for each in borrowers.values()):
        for soft in (False, True):
            yield [borrowers[rows].eligible(nodes, soft) for rows, nodes in groups.items()]


class _OverGuaranteed:
    """The quotas that use more of what is short than they are sure of."""

    def __init__(self, claimant: reclaim_rules.Claimant, rows: Rows) -> None:
        self.claimant = claimant
        self.state = claimant.state
        self.rows = rows
        tree = self.state.tree
        self._counted = managed_rows(self.state)
        others = set(self.state.running.quotas()) - {claimant.slot, tree.slots[OUTSIDE]}
        self._shares = {row: GuaranteedShares(self.state, row) for row in rows}
        self._entitled = {
            (slot, row): self._shares[row].entitlement(str(tree.slots.names[slot]))
            for slot in sorted(others)
            for row in rows
        }
        self.slots = sorted({slot for slot, row in self._entitled if self._beyond(slot, row) > 0})

    def eligible(self, nodes: Mask, soft: bool) -> Eligible:
        """What they give: down to what they are sure of, or the last one beyond it."""
        claimant = self.claimant
        over: Mask = np.zeros_like(claimant.evictable)
        limits, last = reclaim_rules.lending_group_limits(claimant, self.rows), set()
        for slot in self.slots:
            split = split_at_min(self.state, slot, self.rows)
            over[split_at_min(self.state, slot, self._counted).over] = True
            for row in self.rows:
                limits[slot, row] = split.total[row] - split.floor[row]
                if self._beyond(slot, row) > 0:
                    limits[slot, row] = self._beyond(slot, row)
                    last.add((slot, row))
        evictable = claimant.evictable & over
        reason = Reason.FAIR_SHARE
        passed = frozenset(last if soft else ())
        return Eligible(evictable, reason, self._explain, nodes, limits, soft=passed)

    def _beyond(self, slot: int, row: int) -> int:
        return split_at_min(self.state, slot, self.rows).total[row] - self._entitled[slot, row]

    def _explain(self, victim: Pod) -> str:
        """Who borrows how much of what, against the part that each is sure of."""
        state, claimant = self.state, self.claimant
        giver = str(state.tree.home(victim))
        slot = state.tree.slots[giver]
        names = {state.resources.names[row]: row for row in self.rows}
        name = next((n for n in sorted(names) if self._beyond(slot, names[n]) > 0), min(names))
        row = names[name]
        return (
            f"quota {claimant.quota} takes its part of what is idle for {claimant.claim.pods[0].path}: "
            f"{self._words(claimant.quota, row)}, "
            f"used {text(name, after_leaving(state, row, claimant.slot))}, {claimant.ask_text(row)}; "
            f"quota {giver} uses {text(name, split_at_min(state, slot, self.rows).total[row])}, "
            f"{self._words(giver, row)}"
        )

    def _words(self, quota: str, row: int) -> str:
        state, name = self.state, self.state.resources.names[row]
        low = state.tree.min.get(row, state.tree.slots[quota])
        part = text(name, self._shares[row].guaranteed(quota))
        return f"min {text(name, low)} and {part} of {name}"
