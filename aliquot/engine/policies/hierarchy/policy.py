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

_FINE = 2**32
"""Into so many parts a runtime is divided to see who uses less of theirs."""
_ENDLESS = LIMIT * _FINE


class Hierarchy(Policy):
    """The policy of quota trees."""

    def __init__(self, knobs: Knobs) -> None:
        self._knobs: HierarchyKnobs = knobs.hierarchy
        self._shares: Shares | None = None
        self._news: dict[str, None] = {}
        self._turns: dict[int, int] = {}
        """The part of its runtime that each quota uses, by slot, as long as that has not moved."""
        self._overuse = Recycling(knobs.hierarchy)

    def begin(self, state: State, now: int) -> Iterable[str]:
        """Whose runtime has changed; and who is above theirs."""
        shares = self._fresh(state)
        self._turns.clear()
        news, self._news = self._news, {}
        state.stirred = state.stirred or bool(news)
        self._overuse.watch(state, shares, now)
        return news

    def deadline(self, state: State) -> int | None:
        """When a quota will have been above its runtime for long enough, and it matters."""
        return self._overuse.deadline(state)

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
        if slot in self._turns and slot not in state.ledger.changed_usage:
            return self._turns[slot]
        account = shares.account(slot)
        for row in shares.rows:
            used = shares.taken(row, account)
            if used:
                share = shares.runtime.get(row, account)
                most = max(most, used * _FINE // share if share else _ENDLESS)
        state.ledger.changed_usage.pop(slot, None)
        self._turns[slot] = most
        return most

    def gate(self, state: State, claim: Claim, node_class: str | None) -> Refusal | None:
        """Used, plus what is held, plus the claim, within runtime, all the way up."""
        if claim.quota is None or state.tree.quotas[claim.quota].unshared:
            return None
        shares, charge = self._fresh(state), claim.charge(node_class)
        refusal = self._kind_gate(state, claim, charge)
        if refusal is not None:
            return refusal
        charge = tuple(pair for pair in charge if pair[0] in shares.rows)
        for slot in shares.accounts(claim.quota):
            for row, amount in charge:
                if shares.taken(row, slot) + amount > shares.runtime.get(row, slot):
                    return self._refusal(state, claim, slot, row, amount)
        return None

    def beyond(self, state: State, claim: Claim, node_class: str | None) -> Refusal | None:
        """What is idle may be used beyond runtime; not by pods that nobody could take it from.

        Nor what belongs to a quota that never lends.
        """
        if not self._knobs.surplus or not claim.preemptible:
            return self.gate(state, claim, node_class)
        assert claim.quota is not None
        shares, root = self._fresh(state), state.tree.slots[ROOT]
        line, charge = state.tree.lineage(claim.quota), claim.charge(node_class)
        for row, amount in charge:
            used = sum(shares.taken(row, slot) for slot in shares.first_level)
            if row in shares.rows and (
                used + amount + shares.kept_back(row, line) > shares.runtime.get(row, root)
            ):
                return self.gate(state, claim, node_class)
        return self._kind_gate(state, claim, charge)

    def lent(self, claim: Claim) -> None:
        """These are the first to go when a claim within its runtime asks."""
        self._overuse.lend(claim.uids())

    def rights(self, state: State, claim: Claim, node_class: str | None) -> Rights:
        """What must come free in its quota, and in those above it."""
        rights: Rights = {}
        if claim.quota is None or state.tree.quotas[claim.quota].unshared:
            return rights
        shares, line = self._fresh(state), state.tree.lineage(claim.quota)
        for slot in shares.accounts(claim.quota):
            account = slot if slot in line else line[0]
            for row, amount in claim.charge(node_class):
                most = state.tree.max.get(row, slot)
                if row in shares.rows:
                    most = min(most, shares.runtime.get(row, slot))
                short = shares.soon(row, slot) + amount - most
                if most < LIMIT and short > rights.get(Right(account, row), 0):
                    rights[Right(account, row)] = short
        return rights

    def offers(
        self, state: State, claim: Claim, node_class: str | None, rights: Rights, now: int
    ) -> Iterator[list[Eligible]]:
        """Within runtime, from others beyond theirs; then from its own quota."""
        asking = reclaim_rules.Claimant(state, claim, node_class, rights, now, lambda *_: LIMIT)
        return reclaim_rules.ranks(asking, self._offers(asking, node_class))

    def _offers(
        self, asking: reclaim_rules.Claimant, node_class: str | None
    ) -> Iterator[list[Eligible]]:
        state, claim = asking.state, asking.claim
        quota, charge = state.tree.quotas[asking.quota], claim.charge(node_class)
        if self._kind_gate(state, claim, charge) is not None:
            return
        if self._within_own(state, claim, charge):
            yield from self._overuse.offers(asking, self._fresh(state), node_class)
        if not quota.fallback:
            yield from reclaim_rules.from_own(asking)

    def could_start(self, state: State, claim: Claim) -> bool:
        """Not if it asks for more than the runtime of its quota."""
        if claim.quota is None or state.tree.quotas[claim.quota].unshared:
            return True
        shares = self._fresh(state)
        return super().could_start(state, claim) and all(
            amount <= shares.runtime.get(row, slot)
            for slot in shares.accounts(claim.quota)
            for row, amount in claim.charge(None)
            if row in shares.rows
        )

    def hint(self, state: State, claim: Claim, refusal: Refusal) -> str:
        """Who is above runtime and will have to give back, and when, if that is worth waiting."""
        if not self._within_own(state, claim, claim.charge(None)):
            return ""
        return self._overuse.words(state)

    def recycle(self, state: State, now: int) -> list[Evict]:
        """With `recycle: always`, whoever is above runtime for too long gives back unasked."""
        return self._overuse.recycle(state, self._fresh(state), now)

    def is_owed(self, state: State, claim: Claim) -> bool:
        """Is it within its quota's runtime, whatever is held?"""
        if claim.quota is None or state.tree.quotas[claim.quota].unshared:
            return claim.quota is not None
        shares = self._fresh(state)
        account = shares.account(state.tree.slots[claim.quota])
        return all(
            shares.part(state.ledger.used, row, account) + n <= shares.runtime.get(row, account)
            for row, n in claim.charge(None)
            if row in shares.rows
        )

    def _within_own(self, state: State, claim: Claim, charge: Vector) -> bool:
        """Would its quota's own pods stay within their runtime, and within max?"""
        shares, slot = self._fresh(state), state.tree.slots[str(claim.quota)]
        account = shares.account(slot)
        return all(
            shares.soon(row, account) + amount
            <= min(shares.runtime.get(row, account), state.tree.max.get(row, slot))
            for row, amount in charge
            if row in shares.rows
        )

    def complete(self, state: State, summaries: list[QuotaSummary]) -> list[QuotaSummary]:
        """Runtime, the min in force where it is less, and what a parent is asked for."""
        shares, names = self._fresh(state), state.resources.names
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

    def _fresh(self, state: State) -> Shares:
        """The shares as they are now; what has changed is remembered for the next cycle."""
        if self._shares is None:
            self._shares = Shares(state, self._knobs)
        names = state.tree.slots.names
        changed = self._shares.refresh()
        slots = (self._shares.quota_of(slot) for slot in changed)
        self._news.update({name: None for slot in slots if (name := names[slot]) is not None})
        return self._shares

    def _kind_gate(self, state: State, claim: Claim, charge: Vector) -> Refusal | None:
        """What may not start there at all: pods of a parent, and unmovable ones beyond min."""
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
        used = self._unmovable(state, name)
        for row, amount in charge:
            low = state.tree.min.get(row, slot)
            if row in self._fresh(state).rows and used.get(row, 0) + amount > low:
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

    def _unmovable(self, state: State, quota: str) -> dict[int, int]:
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
        shares, line = self._fresh(state), state.tree.lineage(str(claim.quota))
        own = slot not in line[1:]
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
