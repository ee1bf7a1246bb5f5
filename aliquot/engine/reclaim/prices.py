"""The price of an eviction unit for one claim: what its eviction frees, and what it draws on.

Pods that are charged and take the same in the same accounts free and draw the same, and pods of one
workload do. So the amounts are worked out once for each kind of booking, and shared by the units.
"""

from collections.abc import Hashable

from aliquot.engine.books.ledger import Entry
from aliquot.engine.policies.eligible import (
    Account,
    Limits,
    Rights,
    gang_account,
    kept_account,
    namespace_account,
)
from aliquot.engine.reclaim.candidates import Candidates
from aliquot.engine.reclaim.device_fit import DeviceRoom
from aliquot.engine.reclaim.eviction_units import EvictionUnit
from aliquot.engine.reclaim.rule_fit import RuleRoom
from aliquot.engine.reclaim.victim_set import PRIORITY_OFFSET, Amounts, PricedUnit, price
from aliquot.engine.state import State

NO_NODE = -1
"""The node of units whose room is of no use to the claim."""


class Prices:
    """Prices eviction units, for the rights that a claim needs and the limits of its victims."""

    def __init__(
        self,
        state: State,
        candidates: Candidates,
        gpus: DeviceRoom,
        rules: RuleRoom,
        rights: Rights,
        limits: Limits,
    ) -> None:
        self._state = state
        self._importance = candidates.importance
        self._gpus = gpus
        self._rules = rules
        self._rights: dict[object, int] = dict(rights.items())
        self._limits: dict[object, int] = dict(limits.items())
        self._uncounted: dict[object, set[int]] = {
            right: candidates.outside_sum(right) for right in rights
        }
        """Of each right, the quotas whose pods do not free it."""
        self._accounts = {account for account, _ in (*limits, *rights)}
        self._narrow = any(not isinstance(account, int) for account in self._accounts)
        """Are there limits on accounts that are no quotas?"""
        self._amounts: dict[Hashable, tuple[Amounts, Amounts]] = {}
        self._priced: dict[tuple[tuple[str, ...], int], PricedUnit] = {}

    def of(self, unit: EvictionUnit, node: int) -> PricedUnit:
        """The unit with its price, for a claim that starts on this node."""
        found = self._priced.get((unit.uids, node))
        if found is None or self._rules.matters:
            found = self._priced[unit.uids, node] = self._price(unit, node)
        return found.drawing(unit.draws) if unit.draws else found

    def anew(self, unit: PricedUnit, node: int) -> PricedUnit:
        """A unit from elsewhere, with what rules make of it for a claim on this node."""
        frees = _sum((unit.frees, *(self._rules.frees(uid, node) for uid in unit.uids)))
        draws = _sum((unit.draws, *(self._rules.draws(uid, node) for uid in unit.uids)))
        return unit._replace(frees=frees, draws=draws)

    def _price(self, unit: EvictionUnit, node: int) -> PricedUnit:
        if len(unit.uids) == 1:
            return self._price_of_one(unit.uids[0], node)
        state, slots = self._state, self._state.bound_pods.slots
        pods = [state.pods[uid] for uid in unit.uids]
        each = [self._amounts_of(uid, node) for uid in unit.uids]
        frees, draws = map(_sum, zip(*each, strict=True))
        budgets = tuple(map(state.budgets.on, pods))
        importance = [int(self._importance[slots[uid]]) for uid in unit.uids]
        return price(pods, state.bound_pods.name(unit.uids[0]), frees, draws, budgets, importance)

    def _price_of_one(self, uid: str, node: int) -> PricedUnit:
        """The same for a pod that is evicted alone, as nearly all are: there is nothing to sum."""
        running, pod = self._state.bound_pods, self._state.pods[uid]
        level = int(self._importance[running.slots[uid]])
        age, name, budgets = (pod.started, pod.created), running.name(uid), self._state.budgets
        amounts, total = self._amounts_of(uid, node), level + PRIORITY_OFFSET
        return PricedUnit((uid,), level, age, name, *amounts, (budgets.on(pod),), total)

    def _amounts_of(self, uid: str, node: int) -> tuple[Amounts, Amounts]:
        """What the eviction of a pod frees, and what it draws on."""
        entry = self._state.ledger.entries[uid]
        booking, here = entry.booking, entry.node == node
        if booking.gpu is not None:  # devices and namespace count: hardly two are alike
            found = self._worked_out(entry, here)
        else:
            narrow = (booking.quota, booking.namespace, booking.gang) if self._narrow else None
            kind = booking.charge, booking.room if here else None, entry.path, narrow
            if kind not in self._amounts:
                self._amounts[kind] = self._worked_out(entry, here)
            found = self._amounts[kind]
        if self._rules.matters and node != NO_NODE:
            frees, draws = found
            return (frees | self._rules.frees(uid, node)), (draws | self._rules.draws(uid, node))
        return found

    def _worked_out(self, entry: Entry, here: bool) -> tuple[Amounts, Amounts]:
        frees: Amounts = {}
        draws: Amounts = {}
        accounts = [each for each in self._accounts_of(entry) if each in self._accounts]
        for row, amount in entry.booking.charge:
            for account in accounts:
                key = account, row
                if key in self._rights and entry.path[0] not in self._uncounted[key]:
                    frees[key] = frees.get(key, 0) + amount
                if key in self._limits:
                    draws[key] = draws.get(key, 0) + amount
        for row, amount in entry.booking.room if here else ():
            frees["room", row] = frees.get(("room", row), 0) + amount
        for freed, amount in self._gpus.frees(entry):
            frees[freed] = frees.get(freed, 0) + amount
        return frees, draws

    def _accounts_of(self, entry: Entry) -> tuple[Account, ...]:
        """The accounts that a pod is charged in: its quotas, and narrow ones if these count."""
        if not self._narrow:
            return entry.path
        booking = entry.booking
        return (
            *entry.path,
            *map(kept_account, entry.path),
            namespace_account(booking.quota, booking.namespace),
            gang_account(booking.gang),
        )


def _sum(several: tuple[Amounts, ...]) -> Amounts:
    """The sum of amounts, key by key."""
    total: Amounts = {}
    for amounts in several:
        for key, amount in amounts.items():
            total[key] = total.get(key, 0) + amount
    return total
