"""Koordinator quota trees: everybody may use their runtime, an exact share of what there is.

A claim may start while its quota and every quota above it stay within their runtime. Inside a quota
it takes from pods of lower priority. From other quotas it takes what they use beyond their runtime:
at once what they were lent as surplus, the rest after a while (`revokeAfter`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from aliquot.engine.books.ledger import Stage
from aliquot.engine.books.quota_tree import ROOT
from aliquot.engine.columns import Vector
from aliquot.engine.model.decisions import Evict
from aliquot.engine.model.knobs import HierarchyKnobs, Knobs
from aliquot.engine.model.quantity import LIMIT, text
from aliquot.engine.model.reasons import Reason, Refusal, Watch, asked, kept
from aliquot.engine.policies import reclaim_rules
from aliquot.engine.policies.eligible import Eligible, Right, Rights
from aliquot.engine.policies.hierarchy.recycling import Recycling
from aliquot.engine.policies.hierarchy.shares import Shares
from aliquot.engine.policies.interface import Policy
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.claim_queue import Group
from aliquot.engine.report.summary import QuotaSummary
from aliquot.engine.state import State

_SCALE = 2**32
"""Into so many parts a runtime is divided to see who uses less of theirs."""
_INFINITE = LIMIT * _SCALE


class Hierarchy(Policy):
    """The policy of quota trees."""

    def __init__(self, knobs: Knobs) -> None:
        self._knobs: HierarchyKnobs = knobs.hierarchy
        self._shares: Shares | None = None
        self._changed: dict[str, None] = {}
        self._turns: dict[int, int] = {}
        """The part of its runtime that each quota uses, by slot, as long as that has not moved."""
        self._recycling = Recycling(knobs.hierarchy)

    def begin(self, state: State, now: int) -> Iterable[str]:
        """Whose runtime has changed; and who is above theirs."""
        shares = self._refreshed(state)
        self._turns.clear()
        news, self._changed = self._changed, {}
        state.dirty = state.dirty or bool(news)
        self._recycling.note_overuse(state, shares, now)
        return news

    def deadline(self, state: State) -> int | None:
        """When a quota will have been above its runtime for long enough, and it matters."""
        return self._recycling.deadline(state)

    def path(self, state: State, claim: Claim) -> tuple[Group, ...]:
        """Quotas take turns."""
        return (claim.quota,)

    def turn(self, state: State, group: Group, claim: Claim) -> object:
        """Quotas take turns: the one that uses the smaller part of its runtime comes first.

        By the shares as they were when the cycle began.
        """
        shares = self._shares
        if shares is None or claim.quota not in state.tree.quotas:
            return 0
        slot, most = state.tree.slots[claim.quota], 0
        if slot not in shares.sharing:
            return 0
        if slot in self._turns and slot not in state.ledger.moved:
            return self._turns[slot]
        account = shares.account(slot)
        for row in shares.rows:
            used = shares.taken(row, account)
            if used:
                share = shares.runtime.get(row, account)
                most = max(most, used * _SCALE // share if share else _INFINITE)
        state.ledger.moved.pop(slot, None)
        self._turns[slot] = most
        return most

    def gate(self, state: State, claim: Claim, node_class: str | None) -> Refusal | None:
        """Used, plus what is held, plus the claim, within runtime, all the way up."""
        if claim.quota is None or state.tree.quotas[claim.quota].outside:
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
        """What is idle may be used beyond runtime; not by pods that nobody could take it from.

        Nor what belongs to a quota that never lends.
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
        """These are the first to go when a claim within its runtime asks."""
        self._recycling.note_surplus(claim.uids())

    def rights(self, state: State, claim: Claim, node_class: str | None) -> Rights:
        """What must come free in its quota, and in those above it."""
        rights: Rights = {}
        if claim.quota is None or state.tree.quotas[claim.quota].outside:
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
        """Within runtime, from others beyond theirs; then from its own quota."""
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
        """Not if it asks for more than the runtime of its quota."""
        if claim.quota is None or state.tree.quotas[claim.quota].outside:
            return True
        shares = self._refreshed(state)
        return super().could_start(state, claim) and all(
            amount <= shares.runtime.get(row, slot)
            for slot in shares.accounts(claim.quota)
            for row, amount in claim.charge(None)
            if row in shares.rows
        )

    def explain_no_victims(self, state: State, claim: Claim, refusal: Refusal) -> str:
        """Who is above runtime and will have to give back, and when, if that is worth waiting."""
        if not self._within_runtime(state, claim, claim.charge(None)):
            return ""
        return self._recycling.next_recycling(state)

    def recycle(self, state: State, now: int) -> list[Evict]:
        """With `recycle: always`, whoever is above runtime for too long gives back unasked."""
        return self._recycling.recycle(state, self._refreshed(state), now)

    def is_owed(self, state: State, claim: Claim) -> bool:
        """Is it within its quota's runtime, whatever is held?"""
        if claim.quota is None or state.tree.quotas[claim.quota].outside:
            return claim.quota is not None
        shares = self._refreshed(state)
        account = shares.account(state.tree.slots[claim.quota])
        return all(
            shares.part(state.ledger.used, row, account) + n <= shares.runtime.get(row, account)
            for row, n in claim.charge(None)
            if row in shares.rows
        )

    def _within_runtime(self, state: State, claim: Claim, charge: Vector) -> bool:
        """Would its quota's own pods stay within their runtime, and within max?"""
        shares, slot = self._refreshed(state), state.tree.slots[str(claim.quota)]
        account = shares.account(slot)
        return all(
            shares.after_leaving(row, account) + amount
            <= min(shares.runtime.get(row, account), state.tree.max.get(row, slot))
            for row, amount in charge
            if row in shares.rows
        )

    def complete(self, state: State, summaries: list[QuotaSummary]) -> list[QuotaSummary]:
        """Runtime, the min in force where it is less, and what a parent is asked for."""
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
        """The shares as they are now; what has changed is remembered for the next cycle."""
        if self._shares is None:
            self._shares = Shares(state, self._knobs)
        names = state.tree.slots.names
        changed = self._shares.refresh()
        slots = (self._shares.quota_of(slot) for slot in changed)
        self._changed.update({name: None for slot in slots if (name := names[slot]) is not None})
        return self._shares

    def _admission_gate(self, state: State, claim: Claim, charge: Vector) -> Refusal | None:
        """What may not start there at all: pods of a parent, and unmovable ones beyond min."""
        name = claim.quota
        assert name is not None
        quota, slot = state.tree.quotas[name], state.tree.slots[name]
        if quota.outside:
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
                    f"{asked(claim.size, resource, amount)}",
                    name,
                    resource,
                    (Watch(quota=name),),
                )
        return None

    def _used_by_non_preemptible(self, state: State, quota: str) -> dict[int, int]:
        """What the quota's pods hold that are not preemptible."""
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
        """With the numbers; none where no node could ever hold it: that is what it lacks."""
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
            f"used {text(resource, shares.taken(row, slot) - held)}{kept(resource, held)}, "
            f"{asked(claim.size, resource, amount)}",
            quota=name,
            resource=resource,
            watch=(Watch(quota=name),),
        )
