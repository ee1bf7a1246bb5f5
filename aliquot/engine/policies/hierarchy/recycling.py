"""Recycling: how what quotas use above their runtime is taken back.

Surplus goes at once, for a claim within its own quota's runtime. The rest is recycled: from a quota
that has been above its runtime for `revokeAfter`, what lets such a claim start is taken back. With
`recycle: always` no claim is needed: pods are evicted, the lowest priority first, until the quota
is within its runtime in every resource; of these, pods that fit after all are then spared, the most
important first.
"""

from collections.abc import Collection, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.model.decisions import Evict
from aliquot.engine.model.gang import Unit, units
from aliquot.engine.model.knobs import SECOND, HierarchyKnobs
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.quantity import LIMIT, text
from aliquot.engine.model.reasons import Reason
from aliquot.engine.policies import reclaim_rules
from aliquot.engine.policies.claimant import Claimant
from aliquot.engine.policies.eligible import Eligible, Limits, Mask, evictable_pods
from aliquot.engine.policies.hierarchy.shares import Shares
from aliquot.engine.policies.over_quota import Rows
from aliquot.engine.policies.shields import Shields
from aliquot.engine.state import State

Amounts = dict[int, int]


class Recycling:
    """The quotas above runtime, since when, and the pods that are surplus."""

    def __init__(self, knobs: HierarchyKnobs) -> None:
        self._knobs = knobs
        self._surplus: set[str] = set()
        """Pods that were started on idle capacity."""
        self._since: dict[int, int] = {}
        """Since when a quota has been above its runtime, surplus aside, by slot."""
        self._no_victims: dict[int, tuple[NDArray[np.int64], int]] = {}
        """Quotas of which no pod can be evicted, with their pods and the quotas of that time."""
        self._were_due: set[int] = set()
        self._now = 0

    def note_surplus(self, uids: Collection[str]) -> None:
        """These pods were started on idle capacity."""
        self._surplus.update(uids)

    def note_overuse(self, state: State, shares: Shares, now: int) -> None:
        """Note the quotas above runtime; once one is due for recycling, claims are tried again."""
        self._now = now
        self._surplus = {uid for uid in self._surplus if uid in state.ledger.entries}
        over = _over_runtime(state, shares, self._surplus)
        self._since = {slot: self._since.get(slot, now) for slot in over}
        ranked = state.bound_pods.ranked_slots
        self._no_victims = {
            slot: (pods, version)
            for slot, (pods, version) in self._no_victims.items()
            if slot in self._since and pods is ranked(slot) and version == state.tree.version
        }
        due = self._due(now)
        for slot in sorted(due - self._were_due):
            state.changes.victims.append(str(state.tree.slots.names[slot]))
        self._were_due = due

    def deadline(self, state: State) -> int | None:
        """When the next quota will have been above its runtime for `revokeAfter`, if it matters."""
        if self._knobs.recycle == "demand" and not len(state.waiting):
            return None
        moments = [
            since + self._knobs.revoke_after
            for slot, since in self._since.items()
            if slot not in self._no_victims
        ]
        return min((moment for moment in moments if moment > self._now), default=None)

    def next_recycling(self, state: State, now: int) -> str:
        """For a message: which quota is recycled next, and in how many seconds from `now`."""
        if not self._since:
            return ""
        slot, since = min(self._since.items(), key=lambda pair: (pair[1], pair[0]))
        left = min(since + self._knobs.revoke_after - now, self._knobs.revoke_after)
        if left <= 0 or self._knobs.recycle == "always":
            return ""
        name = state.tree.slots.names[slot]
        return (
            f"; quota {name} uses more than its runtime, and gives back in {-(-left // SECOND)} s"
        )

    def recycle(self, state: State, shares: Shares, shields: Shields, now: int) -> list[Evict]:
        """With `recycle: always`, evictions from quotas above runtime for `revokeAfter`."""
        if self._knobs.recycle != "always":
            return []
        evicted: list[Evict] = []
        for slot, since in sorted(self._since.items()):
            if since + self._knobs.revoke_after <= now and slot not in self._no_victims:
                surplus = self._surplus
                evictions = _evictions(state, shares, shields, slot, surplus, now)
                self._since[slot] = now
                if not evictions and not _evictions(state, shares, shields, slot, surplus, LIMIT):
                    self._no_victims[slot] = state.bound_pods.ranked_slots(slot), state.tree.version
                evicted += evictions
        return evicted

    def eligible_victims(
        self, claimant: Claimant, shares: Shares, node_class: str | None
    ) -> Iterator[list[Eligible]]:
        """First surplus pods; then pods of quotas that are due for recycling."""
        state, running = claimant.state, claimant.state.bound_pods
        charge = claimant.claim.charge(node_class)
        nodes_by_rows = reclaim_rules.by_shortage(
            state, claimant.claim, charge, {r.row for r in claimant.rights}
        )
        surplus: Mask = np.zeros_like(claimant.evictable)
        surplus[[running.slots[uid] for uid in self._surplus if uid in running.slots]] = True
        due: Mask = np.isin(running.quota, list(self._due(self._now)))
        for mask, reason in ((surplus, Reason.SURPLUS_RETURNED), (due, Reason.RECYCLED)):
            these = mask & (running.quota != claimant.slot)
            if these.any():
                yield [
                    _eligible(claimant, shares, rows, nodes, these, reason)
                    for rows, nodes in nodes_by_rows.items()
                ]

    def _due(self, now: int) -> set[int]:
        after = self._knobs.revoke_after
        return {slot for slot, since in self._since.items() if since + after <= now}


def _eligible(
    claimant: Claimant,
    shares: Shares,
    rows: Rows,
    nodes: Mask,
    these: Mask,
    reason: Reason,
) -> Eligible:
    """These pods, as long as their quotas are above runtime in what is short."""
    state, limits = claimant.state, Limits()
    shared = tuple(row for row in rows if row in shares.rows)
    evictable: Mask = these & (claimant.evictable_in(shared) if shared else claimant.evictable)
    for slot in {int(slot) for slot in state.bound_pods.quota[evictable]}:
        for row in rows:
            over = 0
            if slot in shares.sharing and row in shares.rows_of(slot):
                account = shares.account(slot)
                over = shares.staying(row, account) - shares.amounts.get(row, account)
            limits[slot, row] = max(over, 0)
    soft = frozenset(key for key, over in limits.items() if over)

    def explain(victim: Pod) -> str:
        quota = str(state.tree.quota_of(victim))
        slot = state.tree.slots[quota]
        account = shares.account(slot)
        names = {state.resources.names[row]: row for row in rows}
        above = (name for name in sorted(names) if limits.get((slot, names[name])))
        resource = next(above, min(names))
        row = names[resource]
        return (
            f"quota {quota} uses {text(resource, shares.staying(row, account))} {resource}, "
            f"runtime {text(resource, shares.amounts.get(row, account))}; "
            f"{claimant.claim.pods[0].path} starts within the runtime of quota {claimant.quota}"
        )

    return Eligible(evictable, reason, explain, nodes, limits, soft)


def _over_runtime(state: State, shares: Shares, surplus: Collection[str]) -> list[int]:
    """The quotas (by slot) that are above their runtime, surplus aside."""
    surplus_use = _surplus_use(state, surplus)
    return [
        slot
        for slot in state.bound_pods.quotas()
        if slot in shares.sharing and _over(shares, slot, surplus_use.get(slot, {}))
    ]


def _evictions(
    state: State,
    shares: Shares,
    shields: Shields,
    slot: int,
    surplus: Collection[str],
    now: int,
) -> list[Evict]:
    """Evictions that bring the quota within its runtime; pods of exhausted budgets come last."""
    over = _over(shares, slot, _surplus_use(state, surplus).get(slot, {}))
    exposed = shields.exposed(tuple(sorted(over)))
    ranked = _evictable_units(state, exposed, slot, surplus, now)
    words = _words(state, shares, slot)
    victims = (pod for unit in _choose(state, ranked, over) for pod in unit.pods)
    return [Evict(pod, None, Reason.RECYCLED, words) for pod in victims]


def _evictable_units(
    state: State, exposed: Mask, slot: int, surplus: Collection[str], now: int
) -> list["_EvictableUnit"]:
    """What may be evicted of a quota, the least important first, but exhausted budgets last."""
    evictable = evictable_pods(state, now) & exposed
    pods = [state.pods[uid] for uid in state.bound_pods.ranked(slot)]
    found = [
        _EvictableUnit(state, unit)
        for unit in reversed(units(pods, state.gangs.of))
        if all(
            evictable[state.bound_pods.slots[pod.uid]] and pod.uid not in surplus
            for pod in unit.pods
        )
    ]
    return sorted(found, key=lambda unit: unit.breaks_budget)


def _choose(
    state: State, ranked: list["_EvictableUnit"], over: Amounts
) -> Iterable["_EvictableUnit"]:
    """The first units, until nothing is over; with a core, the pods of its gang beyond the core."""
    chosen: dict[_EvictableUnit, None] = {}
    for unit in ranked:
        if unit not in chosen and any(n > 0 and unit.charge.get(row) for row, n in over.items()):
            for each in (each for each in ranked if each is unit or each.depends_on(unit)):
                if each not in chosen:
                    chosen[each] = None
                    over = {row: n - each.charge.get(row, 0) for row, n in over.items()}
    _spare(state, chosen, over)
    return chosen


def _spare(state: State, chosen: dict["_EvictableUnit", None], over: Amounts) -> None:
    """Spare the units without which nothing is over either, the most important first.

    Unless something is over even with all of them. A pod beyond a core that is chosen stays so.
    """
    if any(amount > 0 for amount in over.values()):
        return
    for unit in sorted(chosen, key=lambda unit: state.bound_pods.key(unit.pods[0].uid)):
        without = {row: amount + unit.charge.get(row, 0) for row, amount in over.items()}
        alone = not any(unit.depends_on(each) for each in chosen)
        if alone and all(amount <= 0 for amount in without.values()):
            over = without
            del chosen[unit]


class _EvictableUnit:
    """A pod, or the core of a gang, which is evicted as a whole."""

    def __init__(self, state: State, unit: Unit) -> None:
        self.pods = pods = unit.pods
        self.charge: Amounts = {}
        for pod in pods:
            for row, amount in state.ledger.entries[pod.uid].booking.charge:
                self.charge[row] = self.charge.get(row, 0) + amount
        self.breaks_budget = any(_budget_exhausted(state, pod.uid) for pod in pods)
        self._gang = pods[0].gang
        self._is_core = unit.is_core

    def depends_on(self, other: "_EvictableUnit") -> bool:
        """Is it a pod beyond the core of a gang, and `other` that core?"""
        return other._is_core and not self._is_core and self._gang == other._gang


def _surplus_use(state: State, surplus: Collection[str]) -> dict[int, Amounts]:
    """What each quota (by slot) uses as surplus."""
    surplus_use: dict[int, Amounts] = {}
    for uid in surplus:
        entry = state.ledger.entries[uid]
        sums = surplus_use.setdefault(entry.path[0], {})
        for row, amount in entry.booking.charge:
            sums[row] = sums.get(row, 0) + amount
    return surplus_use


def _over(shares: Shares, slot: int, surplus_use: Amounts) -> Amounts:
    """By how much a quota's pods are above its runtime, surplus aside, in the rows where they are.

    What is held for its waiting claims is not used: it cannot be taken back by an eviction.
    """
    account = shares.account(slot)
    beyond = {
        row: shares.staying(row, account)
        - surplus_use.get(row, 0)
        - shares.amounts.get(row, account)
        for row in sorted(shares.rows_of(slot))
    }
    return {row: amount for row, amount in beyond.items() if amount > 0}


def _budget_exhausted(state: State, uid: str) -> bool:
    return state.budgets.exhausted(state.pods[uid])


def _words(state: State, shares: Shares, slot: int) -> str:
    """The message of an eviction: in which resources the quota is above its runtime."""
    account = shares.account(slot)
    parts = []
    for row in sorted(shares.rows_of(slot)):
        name, used = state.resources.names[row], shares.staying(row, account)
        share = shares.amounts.get(row, account)
        if used > share:
            parts.append(f"uses {text(name, used)} {name}, runtime {text(name, share)}")
    return f"quota {state.tree.slots.names[slot]} {'; '.join(parts)}"
