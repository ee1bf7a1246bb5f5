"""Koordinator quota trees: everybody may use their runtime, an exact share of what there is.

A claim may start while its quota and every quota above it stay within their runtime. Inside a quota
it takes from pods of lower priority. From other quotas it takes what they use beyond their runtime:
at once what they were lent as surplus, the rest after a while (`revokeAfter`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from aliquot.engine.claim import Claim
from aliquot.engine.columns import Vector
from aliquot.engine.config import SECOND, HierarchyKnobs, Knobs
from aliquot.engine.decisions import Evict
from aliquot.engine.ledger import Stage
from aliquot.engine.objects import Pod
from aliquot.engine.offer import Limits, Mask, Offer, Right, Rights
from aliquot.engine.policies import giving, recycling
from aliquot.engine.policies.base import Policy
from aliquot.engine.policies.shares import Shares
from aliquot.engine.policies.walk import Rows
from aliquot.engine.quantity import LIMIT, text
from aliquot.engine.reasons import Reason, Refusal, Watch, asked, kept
from aliquot.engine.state import State
from aliquot.engine.summary import QuotaSummary
from aliquot.engine.tree import ROOT

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
        self._surplus: set[str] = set()
        """Pods that were started on what would otherwise have been idle."""
        self._over_since: dict[int, int] = {}
        """Since when a quota has used more than its runtime, surplus aside, by slot."""
        self._in_vain: dict[int, list[str]] = {}
        """Quotas of whose pods, these, nobody can go: there is nothing to wait for."""
        self._was_ripe: set[int] = set()
        self._now = 0

    def begin(self, state: State, now: int) -> Iterable[str]:
        """Whose runtime has changed; and who is above theirs."""
        self._now = now
        entries = state.ledger.entries
        self._surplus = {uid for uid in self._surplus if uid in entries}
        self._fresh(state)
        self._turns.clear()
        news, self._news = self._news, {}
        self._watch_overuse(state, now)
        return news

    def deadline(self, state: State) -> int | None:
        """When a quota will have been above its runtime for long enough, and it matters."""
        if self._knobs.recycle == "demand" and not len(state.waiting):
            return None
        moments = [
            since + self._knobs.revoke_after
            for slot, since in self._over_since.items()
            if slot not in self._in_vain
        ]
        return min((moment for moment in moments if moment > self._now), default=None)

    def turn(self, state: State, claim: Claim) -> object:
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
                most = max(most, used * _FINE // share if share else _ENDLESS)
        state.ledger.moved.pop(slot, None)
        self._turns[slot] = most
        return most

    def gate(self, state: State, claim: Claim, node_class: str | None) -> Refusal | None:
        """Used, plus what is held, plus the claim, within runtime, all the way up."""
        if claim.quota is None or state.tree.quotas[claim.quota].outside:
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
        if not self._knobs.surplus or not all(pod.preemptible for pod in claim.pods):
            return self.gate(state, claim, node_class)
        assert claim.quota is not None
        shares, root = self._fresh(state), state.tree.slots[ROOT]
        path, charge = state.tree.path(claim.quota), claim.charge(node_class)
        for row, amount in charge:
            used = sum(shares.taken(row, slot) for slot in shares.first_level)
            if row in shares.rows and (
                used + amount + shares.kept_back(row, path) > shares.runtime.get(row, root)
            ):
                return self.gate(state, claim, node_class)
        return self._kind_gate(state, claim, charge)

    def lent(self, claim: Claim) -> None:
        """These are the first to go when a claim within its runtime asks."""
        self._surplus.update(claim.uids())

    def rights(self, state: State, claim: Claim, node_class: str | None) -> Rights:
        """What must come free in its quota, and in those above it."""
        rights: Rights = {}
        if claim.quota is None or state.tree.quotas[claim.quota].outside:
            return rights
        shares, path = self._fresh(state), state.tree.path(claim.quota)[:-1]
        for slot in shares.accounts(claim.quota):
            account = slot if slot in path else path[0]
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
    ) -> Iterator[list[Offer]]:
        """Within runtime, from others beyond theirs; then from its own quota."""
        asking = giving.Asking(state, claim, node_class, rights, now, lambda *_: LIMIT)
        asking.may_go &= state.running.preemptible
        settled = giving.outside_quotas(asking)
        if settled is not None:
            yield settled
            return
        yield from giving.from_those_who_go_first(asking)
        quota, charge = state.tree.quotas[asking.quota], claim.charge(node_class)
        if self._kind_gate(state, claim, charge) is not None:
            return
        if self._within_own(state, claim, charge):
            yield from self._from_overuse(asking, node_class)
        if not quota.fallback:
            yield from giving.from_own(asking)

    def hint(self, state: State, claim: Claim, refusal: Refusal) -> str:
        """Who is above runtime and will have to give back, and when."""
        if not self._over_since or not self._within_own(state, claim, claim.charge(None)):
            return ""
        slot, since = min(self._over_since.items(), key=lambda pair: (pair[1], pair[0]))
        left = since + self._knobs.revoke_after - self._now
        if left <= 0 or self._knobs.recycle == "always":
            return ""
        name = state.tree.slots.names[slot]
        return f"; quota {name} uses more than its runtime, and gives back in {left // SECOND} s"

    def is_owed(self, state: State, claim: Claim) -> bool:
        """Is it within its quota's runtime, whatever is held?"""
        if claim.quota is None or state.tree.quotas[claim.quota].outside:
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

    def recycle(self, state: State, now: int) -> list[Evict]:
        """With `recycle: always`, whoever is above runtime for too long gives back unasked."""
        if self._knobs.recycle != "always":
            return []
        gone: list[Evict] = []
        for slot, since in sorted(self._over_since.items()):
            if since + self._knobs.revoke_after <= now and slot not in self._in_vain:
                shares, surplus = self._fresh(state), self._surplus
                evictions = recycling.evictions(state, shares, slot, surplus, now)
                self._over_since[slot] = now
                if not evictions and not recycling.evictions(state, shares, slot, surplus, LIMIT):
                    self._in_vain[slot] = state.running.ranked(slot)
                gone += evictions
        return gone

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
                request |= {name: shares.request.get(row, slot) for name, row in rows.items()}
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
        self._news.update({name: None for slot in changed if (name := names[slot]) is not None})
        return self._shares

    def _kind_gate(self, state: State, claim: Claim, charge: Vector) -> Refusal | None:
        """What may not start there at all: pods of a parent, and unmovable ones beyond min."""
        name = claim.quota
        assert name is not None
        quota, slot = state.tree.quotas[name], state.tree.slots[name]
        if quota.outside:
            return None
        if quota.is_parent and self._knobs.parent_pods == "refuse":
            words = f"quota {name} is a parent: pods belong to the quotas below it"
            return Refusal(Reason.PARENT_QUOTA, words, name, watch=(Watch(quota=name),))
        if all(pod.preemptible for pod in claim.pods):
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
                    f"{asked(claim.size, resource, amount)}",
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

    def _refusal(self, state: State, claim: Claim, slot: int, row: int, amount: int) -> Refusal:
        shares, path = self._fresh(state), state.tree.path(claim.quota)
        own = slot not in path[1:]
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

    def _watch_overuse(self, state: State, now: int) -> None:
        """Note who is above runtime, and since when; wake those who wait for that to be long."""
        shares = self._fresh(state)
        over = recycling.overused(state, shares, self._surplus)
        self._over_since = {slot: self._over_since.get(slot, now) for slot in over}
        ranked = state.running.ranked
        self._in_vain = {
            slot: pods
            for slot, pods in self._in_vain.items()
            if slot in self._over_since and pods is ranked(slot)
        }
        ripe = self._ripe(now)
        if ripe - self._was_ripe:
            state.stirred = True
        self._was_ripe = ripe

    def _ripe(self, now: int) -> set[int]:
        after = self._knobs.revoke_after
        return {slot for slot, since in self._over_since.items() if since + after <= now}

    def _from_overuse(self, asking: giving.Asking, node_class: str | None) -> Iterator[list[Offer]]:
        """First what was lent as surplus, at once; then from those above runtime for long."""
        state, running = asking.state, asking.state.running
        shares = self._fresh(state)
        charge = asking.claim.charge(node_class)
        groups = giving.by_shortage(state, asking.claim, charge, {r.row for r in asking.rights})
        lent: Mask = np.zeros_like(asking.may_go)
        lent[[running.slots[uid] for uid in self._surplus if uid in running.slots]] = True
        ripe: Mask = np.isin(running.quota, list(self._ripe(self._now)))
        for mask, reason in ((lent, Reason.SURPLUS_RETURNED), (ripe, Reason.RECYCLED)):
            may_go = asking.may_go & mask & (running.quota != asking.slot)
            if may_go.any():
                yield [
                    self._offer(asking, shares, rows, nodes, may_go, reason)
                    for rows, nodes in groups.items()
                ]

    def _offer(
        self,
        asking: giving.Asking,
        shares: Shares,
        rows: Rows,
        nodes: Mask,
        may_go: Mask,
        reason: Reason,
    ) -> Offer:
        """As long as they use more than their runtime of what is short."""
        state, limits = asking.state, Limits()
        for slot in {int(slot) for slot in state.running.quota[may_go]}:
            for row in rows:
                over = 0
                if row in shares.rows and slot in shares.sharing:
                    account = shares.account(slot)
                    over = shares.soon(row, account) - shares.runtime.get(row, account)
                limits[slot, row] = max(over, 0)
        soft = frozenset(key for key, over in limits.items() if over)

        def explain(victim: Pod) -> str:
            name = str(state.tree.home(victim))
            slot = state.tree.slots[name]
            account = shares.account(slot)
            row = next((row for row in rows if limits.get((slot, row))), rows[0])
            resource = state.resources.names[row]
            return (
                f"quota {name} uses {text(resource, shares.soon(row, account))} {resource}, "
                f"runtime {text(resource, shares.runtime.get(row, account))}; "
                f"{asking.claim.pods[0].path} starts within the runtime of quota {asking.quota}"
            )

        return Offer(may_go, reason, explain, nodes, limits, soft)
