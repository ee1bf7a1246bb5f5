"""Reclaim by fair share: what is borrowed is shared by preemption.

A claim within its quota's min reclaims from over-quota pods of any quota above min. A claim above
min preempts lower-priority pods of its own quota first; then, if its quota stays within min plus
its guaranteed share, over-quota pods of quotas that use more than theirs.
"""

from collections.abc import Iterator

import numpy as np

from aliquot.engine.books.quota_tree import OUTSIDE
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.quantity import text
from aliquot.engine.model.reasons import Reason, Refusal
from aliquot.engine.policies import reclaim_rules
from aliquot.engine.policies.capacity.reclaim import MinReclaim
from aliquot.engine.policies.claimant import Claimant
from aliquot.engine.policies.eligible import Eligible, Mask
from aliquot.engine.policies.fair.guaranteed import GuaranteedShares
from aliquot.engine.policies.over_quota import Rows, split_at_min
from aliquot.engine.policies.usage import after_leaving
from aliquot.engine.queue.claim import Claim

_RANKS = ((True, False), (True, True))
"""Over-quota pods only: first down to the quota's min, then down to its floor."""
_ANY = (False, False)
"""Where quotas have mins by model, over-quota pods may be within these, and stay: others go."""


class FairReclaim(MinReclaim):
    """Which pods may be evicted where quotas share what is borrowed."""

    def by_rank(self, claimant: Claimant, node_class: str | None) -> Iterator[list[Eligible]]:
        """Within min, over-quota pods of quotas above theirs.

        Above min, first lower-priority pods of its own quota, then over-quota pods of quotas above
        min plus their guaranteed share.
        """
        ranks = (*_RANKS, _ANY) if self._state.model_mins else _RANKS
        yield from reclaim_rules.reclaim_for_min(claimant, ranks, by_label=True)
        if claimant.borrows:
            yield from reclaim_rules.preempt_in_quota(claimant)
            yield from _fair_share(claimant)

    def may_reclaim(self, claim: Claim, row: int) -> bool:
        """Above min it may still be within its share, which depends on what others use."""
        return True

    def borrowers(self, row: int) -> set[int] | None:
        """Any, as shares depend on what all quotas use."""
        return None

    def spare(self, quota: str, row: int) -> int:
        """As `capacity`, and at least the entitlement once waiting pods use their quotas' min."""
        shares = GuaranteedShares(self._state, row, count_waiting=True)
        return max(super().spare(quota, row), shares.entitlement(quota))

    def explain_no_victims(self, claim: Claim, refusal: Refusal, now: int) -> str:
        """How much the quota may use by preemption, where the claim would borrow more."""
        if refusal.reason is not Reason.BORROWING_EXHAUSTED or refusal.resource is None:
            return ""
        assert claim.quota is not None
        state, name = self._state, refusal.resource
        row, slot = state.resources.row(name), state.tree.slots[claim.quota]
        sure = GuaranteedShares(state, row).entitlement(claim.quota)
        low = state.tree.min.get(row, slot)
        asks = dict(claim.charge(None)).get(row, 0)
        if not low < after_leaving(state, row, slot) + asks > sure:
            return ""
        words = f"min {text(name, low)} and {text(name, sure - low)} of what is idle"
        return f"; its quota may take back up to {text(name, sure)} {name} ({words})"


def _fair_share(claimant: Claimant) -> Iterator[list[Eligible]]:
    """Over-quota pods of quotas above their entitlement, for a claim that stays within its own."""
    state = claimant.state
    within = all(
        after_leaving(state, row, claimant.slot) + amount
        <= GuaranteedShares(state, row).entitlement(claimant.quota)
        for row, amount in claimant.charge
    )
    if not within:
        return
    nodes_by_rows = reclaim_rules.short_rows(claimant)
    borrowers = {rows: _OverGuaranteed(claimant, rows) for rows in nodes_by_rows}
    if any(each.slots for each in borrowers.values()):
        for soft in (False, True):
            yield [borrowers[rows].eligible(nodes, soft) for rows, nodes in nodes_by_rows.items()]


class _OverGuaranteed:
    """The quotas that use more than their entitlement of what is short."""

    def __init__(self, claimant: Claimant, rows: Rows) -> None:
        self.claimant = claimant
        self.state = claimant.state
        self.rows = rows
        tree = self.state.tree
        self._counted = self.state.tree.guaranteed_rows()
        others = set(self.state.bound_pods.quotas()) - {claimant.slot, tree.slots[OUTSIDE]}
        self._shares = {row: GuaranteedShares(self.state, row) for row in rows}
        self._entitled = {
            (slot, row): self._shares[row].entitlement(str(tree.slots.names[slot]))
            for slot in sorted(others)
            for row in rows
        }
        self.slots = sorted({slot for slot, row in self._entitled if self._beyond(slot, row) > 0})

    def eligible(self, nodes: Mask, soft: bool) -> Eligible:
        """Their over-quota pods, down to their entitlement; `soft`: the last victim may pass it."""
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
        evictable = claimant.evictable_in(self.rows) & over
        reason = Reason.FAIR_SHARE
        passed = frozenset(last if soft else ())
        return Eligible(evictable, reason, self._explain, nodes, limits, soft=passed)

    def _beyond(self, slot: int, row: int) -> int:
        return split_at_min(self.state, slot, self.rows).total[row] - self._entitled[slot, row]

    def _explain(self, victim: Pod) -> str:
        """The message of a fair-share preemption: use and guaranteed share of both quotas."""
        state, claimant = self.state, self.claimant
        victim_quota = str(state.tree.quota_of(victim))
        slot = state.tree.slots[victim_quota]
        names = {state.resources.names[row]: row for row in self.rows}
        name = next((n for n in sorted(names) if self._beyond(slot, names[n]) > 0), min(names))
        row, path = names[name], claimant.claim.pods[0].path
        used = split_at_min(state, slot, self.rows).total[row]
        return (
            f"quota {claimant.quota} takes its part of what is idle for {path}: "
            f"{self._words(claimant.quota, row)}, "
            f"used {text(name, after_leaving(state, row, claimant.slot))}, "
            f"{claimant.ask_text(row)}; "
            f"quota {victim_quota} uses {text(name, used)}, "
            f"{self._words(victim_quota, row)}"
        )

    def _words(self, quota: str, row: int) -> str:
        state, name = self.state, self.state.resources.names[row]
        low = state.tree.min.get(row, state.tree.slots[quota])
        part = text(name, self._shares[row].guaranteed(quota))
        return f"min {text(name, low)} and {part} of {name}"
