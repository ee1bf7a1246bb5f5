"""Koordinator quota trees: each quota may use its runtime, an exact share of the cluster.

A claim may start while its quota and every ancestor stay within their runtime. Quotas take turns by
used / runtime; inside a quota, claims come by priority, then age. When nothing else can start, a
claim may use idle capacity beyond runtime, up to max, as surplus. A claim preempts lower-priority
pods of its own quota. From other quotas it takes what they use above runtime: surplus at once, the
rest once they have been above it for `revokeAfter` (see `recycling`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from aliquot.engine.books.changes import Cursor
from aliquot.engine.books.ledger import Stage
from aliquot.engine.books.quota_tree import ROOT
from aliquot.engine.columns import Vector
from aliquot.engine.model.decisions import Evict
from aliquot.engine.model.knobs import HierarchyKnobs, Knobs
from aliquot.engine.model.quantity import LIMIT, text
from aliquot.engine.model.reasons import Reason, Refusal, Watch, ask_text, held_text
from aliquot.engine.model.summaries import QuotaSummary
from aliquot.engine.policies import reclaim_rules
from aliquot.engine.policies.eligible import Eligible, Right, Rights
from aliquot.engine.policies.hierarchy.recycling import Recycling
from aliquot.engine.policies.hierarchy.shares import Shares
from aliquot.engine.policies.interface import Policy
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.claim_queue import Group
from aliquot.engine.state import State

_SCALE = 2**32
"""The fixed-point scale of used / runtime, which is cheaper to compare than fractions: ratios that
differ by less than 2**-32 count as equal."""
_INFINITE = LIMIT * _SCALE


class Hierarchy(Policy):
    """The policy of quota trees."""

    def __init__(self, knobs: Knobs) -> None:
        self._knobs: HierarchyKnobs = knobs.hierarchy
        self._shares: Shares | None = None
        self._changed: dict[str, None] = {}
        self._turns: dict[int, int] = {}
        """Used / runtime of each quota, by slot, until its usage changes."""
        self._usage: Cursor[int] | None = None
        self._recycling = Recycling(knobs.hierarchy)

    def begin(self, state: State, now: int) -> Iterable[str]:
        """Refresh the shares, note quotas above runtime; the quotas whose runtime has changed."""
        shares = self._refreshed(state)
        self._turns.clear()
        news, self._changed = self._changed, {}
        for name in news:
            state.changes.victims.append(name)
        self._recycling.note_overuse(state, shares, now)
        return news

    def deadline(self, state: State) -> int | None:
        """When a quota will have been above its runtime for long enough, and it matters."""
        return self._recycling.deadline(state)

    def path(self, state: State, claim: Claim) -> tuple[Group, ...]:
        """The claim's quota: quotas take turns."""
        return (claim.quota,)

    def turn(self, state: State, group: Group, claim: Claim) -> object:
        """The quota that uses the smaller part of its runtime in its dominant resource comes first.

        By the runtime as it was when the cycle began.
        """
        shares = self._shares
        if shares is None or claim.quota not in state.tree.quotas:
            return 0
        slot, most = state.tree.slots[claim.quota], 0
        if slot not in shares.sharing:
            return 0
        for changed in self._changed_usage(state):
            self._turns.pop(changed, None)
        if slot in self._turns:
            return self._turns[slot]
        account = shares.account(slot)
        for row in shares.rows:
            used = shares.taken(row, account)
            if used:
                share = shares.runtime.get(row, account)
                most = max(most, used * _SCALE // share if share else _INFINITE)
        self._turns[slot] = most
        return most

    def _changed_usage(self, state: State) -> list[int]:
        if self._usage is None:
            self._usage = state.changes.usage.cursor()
        return self._usage.read() if self._usage else []

    def gate(self, state: State, claim: Claim, node_class: str | None) -> Refusal | None:
        """Used, plus nominations, plus the claim, within runtime, up to the root."""
        if claim.quota is None or state.tree.quotas[claim.quota].unshared:
            return None
        shares, charge = self._refreshed(state), claim.charge(node_class)
        refusal = self._admission_gate(state, claim, charge)
        if refusal is not None:
            return refusal
        charge = tuple(pair for pair in charge if pair[0] in shares.rows)
        for slot in shares.accounts(claim.quota):
            for row, amount in charge:
                if shares.taken(row, slot) + amount > shares.runtime.get(row, slot):
                    return self._refusal(state, claim, slot, row, amount)
        return None

    def idle_gate(self, state: State, claim: Claim, node_class: str | None) -> Refusal | None:
        """With `surplus`, idle capacity may be used beyond runtime by preemptible pods.

        Except the unused min of quotas that do not lend.
        """
        if not self._knobs.surplus or not claim.preemptible:
            return self.gate(state, claim, node_class)
        assert claim.quota is not None
        shares, root = self._refreshed(state), state.tree.slots[ROOT]
        lineage, charge = state.tree.lineage(claim.quota), claim.charge(node_class)
        for row, amount in charge:
            used = sum(shares.taken(row, slot) for slot in shares.first_level)
            if row in shares.rows and (
                used + amount + shares.unused_guarantees(row, lineage)
                > shares.runtime.get(row, root)
            ):
                return self.gate(state, claim, node_class)
        return self._admission_gate(state, claim, charge)

    def started_on_idle(self, claim: Claim) -> None:
        """Its pods are surplus: the first victims of a claim within its quota's runtime."""
        self._recycling.note_surplus(claim.uids())

    def rights(self, state: State, claim: Claim, node_class: str | None) -> Rights:
        """What must come free in its quota and every ancestor, to be within runtime and max."""
        rights: Rights = {}
        if claim.quota is None or state.tree.quotas[claim.quota].unshared:
            return rights
        shares, lineage = self._refreshed(state), state.tree.lineage(claim.quota)
        for slot in shares.accounts(claim.quota):
            account = slot if slot in lineage else lineage[0]
            for row, amount in claim.charge(node_class):
                most = state.tree.max.get(row, slot)
                if row in shares.rows:
                    most = min(most, shares.runtime.get(row, slot))
                short = shares.after_leaving(row, slot) + amount - most
                if most < LIMIT and short > rights.get(Right(account, row), 0):
                    rights[Right(account, row)] = short
        return rights

    def eligible_victims(
        self, state: State, claim: Claim, node_class: str | None, rights: Rights, now: int
    ) -> Iterator[list[Eligible]]:
        """Within runtime, pods of quotas above theirs; then lower-priority pods of its own."""
        claimant = reclaim_rules.Claimant(state, claim, node_class, rights, now, lambda *_: LIMIT)
        return reclaim_rules.ranks(claimant, self._eligible_victims(claimant, node_class))

    def _eligible_victims(
        self, claimant: reclaim_rules.Claimant, node_class: str | None
    ) -> Iterator[list[Eligible]]:
        state, claim = claimant.state, claimant.claim
        quota, charge = state.tree.quotas[claimant.quota], claim.charge(node_class)
        if self._admission_gate(state, claim, charge) is not None:
            return
        if self._within_runtime(state, claim, charge):
            yield from self._recycling.eligible_victims(
                claimant, self._refreshed(state), node_class
            )
        if not quota.fallback:
            yield from reclaim_rules.preempt_in_quota(claimant)

    def could_start(self, state: State, claim: Claim) -> bool:
        """Not if the claim asks for more than the whole runtime of its quota or an ancestor."""
        if claim.quota is None or state.tree.quotas[claim.quota].unshared:
            return True
        shares = self._refreshed(state)
        return super().could_start(state, claim) and all(
            amount <= shares.runtime.get(row, slot)
            for slot in shares.accounts(claim.quota)
            for row, amount in claim.charge(None)
            if row in shares.rows
        )

    def explain_no_victims(self, state: State, claim: Claim, refusal: Refusal) -> str:
        """Which quota above runtime will be recycled, and when, if the claim is within its own."""
        if not self._within_runtime(state, claim, claim.charge(None)):
            return ""
        return self._recycling.next_recycling(state)

    def recycle(self, state: State, now: int) -> list[Evict]:
        """With `recycle: always`, evictions from quotas above runtime for `revokeAfter`."""
        return self._recycling.recycle(state, self._refreshed(state), now)

    def is_owed(self, state: State, claim: Claim) -> bool:
        """Is the claim within its quota's runtime, nominations aside?"""
        if claim.quota is None or state.tree.quotas[claim.quota].unshared:
            return claim.quota is not None
        shares = self._refreshed(state)
        account = shares.account(state.tree.slots[claim.quota])
        return all(
            shares.part(state.ledger.used, row, account) + n <= shares.runtime.get(row, account)
            for row, n in claim.charge(None)
            if row in shares.rows
        )

    def _within_runtime(self, state: State, claim: Claim, charge: Vector) -> bool:
        """Would its quota's own pods stay within runtime and max with the claim?"""
        shares, slot = self._refreshed(state), state.tree.slots[str(claim.quota)]
        account = shares.account(slot)
        return all(
            shares.after_leaving(row, account) + amount
            <= min(shares.runtime.get(row, account), state.tree.max.get(row, slot))
            for row, amount in charge
            if row in shares.rows
        )

    def complete(self, state: State, summaries: list[QuotaSummary]) -> list[QuotaSummary]:
        """Runtime, the scaled min where it is less than min, and the request of parents."""
        shares, names = self._refreshed(state), state.resources.names
        completed = []
        for each in summaries:
            slot = state.tree.slots[each.name]
            named = {*each.min, *each.max} or {names[row] for row in shares.rows}
            counted = shares.rows if slot in shares.sharing else ()
            rows = {names[row]: row for row in sorted(counted) if names[row] in named}
            runtime = {name: shares.runtime.get(row, slot) for name, row in rows.items()}
            low = {name: shares.scaled_min.get(row, slot) for name, row in rows.items()}
            request = each.request
            if state.tree.quotas[each.name].is_parent:
                asked_for = {name: shares.request.get(row, slot) for name, row in rows.items()}
                request = request | asked_for
            scaled = {name: low[name] for name, n in each.min.items() if low.get(name, n) < n}
            completed.append(
                replace(each, runtime=runtime, request=request, scaled_min=scaled or None)
            )
        return completed

    def _refreshed(self, state: State) -> Shares:
        """The shares as they are now; changed runtimes are noted for the next cycle's wake-ups."""
        if self._shares is None:
            self._shares = Shares(state, self._knobs)
        names = state.tree.slots.names
        changed = self._shares.refresh()
        slots = (self._shares.quota_of(slot) for slot in changed)
        self._changed.update({name: None for slot in slots if (name := names[slot]) is not None})
        return self._shares

    def _admission_gate(self, state: State, claim: Claim, charge: Vector) -> Refusal | None:
        """Refuses pods in a parent quota, and non-preemptible pods above the quota's min."""
        name = claim.quota
        assert name is not None
        quota, slot = state.tree.quotas[name], state.tree.slots[name]
        if quota.unshared:
            return None
        if quota.is_parent and self._knobs.parent_pods == "refuse":
            words = f"quota {name} is a parent: pods belong to the quotas below it"
            return Refusal(Reason.PARENT_QUOTA, words, name, watch=(Watch(quota=name),))
        if claim.preemptible:
            return None
        used = self._used_by_non_preemptible(state, name)
        for row, amount in charge:
            low = state.tree.min.get(row, slot)
            if row in self._refreshed(state).rows and used.get(row, 0) + amount > low:
                resource = state.resources.names[row]
                return Refusal(
                    Reason.NON_PREEMPTIBLE_ABOVE_MIN,
                    f"quota {name}: min {text(resource, low)} {resource}, used by pods that are "
                    f"not preemptible {text(resource, used.get(row, 0))}, "
                    f"{ask_text(claim.size, resource, amount)}",
                    name,
                    resource,
                    (Watch(quota=name),),
                )
        return None

    def _used_by_non_preemptible(self, state: State, quota: str) -> dict[int, int]:
        """What the quota's non-preemptible pods use or are nominated for."""
        used: dict[int, int] = {}
        for uid in state.ledger.by_quota.get(quota, ()):
            entry = state.ledger.entries[uid]
            if entry.stage >= Stage.HELD and not state.pods[uid].preemptible:
                for row, amount in entry.booking.charge:
                    used[row] = used.get(row, 0) + amount
        return used

    def _refusal(
        self, state: State, claim: Claim, slot: int, row: int, amount: int
    ) -> Refusal | None:
        """The refusal with its numbers; None where no node could hold the claim even when empty.

        Then placement refuses it, with the reason that matters.
        """
        if not all(map(state.placement.could_hold, claim.asks)):
            return None
        shares, lineage = self._refreshed(state), state.tree.lineage(str(claim.quota))
        own = slot not in lineage[1:]
        name = str(claim.quota) if own else str(state.tree.slots.names[slot])
        resource = state.resources.names[row]
        share, held = shares.runtime.get(row, slot), shares.part(state.ledger.held, row, slot)
        above = "" if own else f", above {claim.quota}"
        return Refusal(
            Reason.RUNTIME_EXCEEDED if own else Reason.ANCESTOR_EXCEEDED,
            f"quota {name}{above}: runtime {text(resource, share)} {resource}, "
            f"used {text(resource, shares.taken(row, slot) - held)}{held_text(resource, held)}, "
            f"{ask_text(claim.size, resource, amount)}",
            quota=name,
            resource=resource,
            watch=(Watch(quota=name),),
        )
