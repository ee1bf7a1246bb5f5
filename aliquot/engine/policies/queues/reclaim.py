"""Reclaim between queues: from queues that use more than they deserve of what is short.

A claim reclaims only if its queue and all above it end within deserved. Victim queues keep what
they deserve; if no other set works, the last victim may take them below it, never below their
guarantee. Inside a victim queue, the namespaces that had the last turns lose pods first.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from aliquot.engine.books.quota_tree import OUTSIDE, ROOT
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.quantity import text
from aliquot.engine.model.reasons import Reason, ask_text
from aliquot.engine.policies import reclaim_rules
from aliquot.engine.policies.eligible import (
    Account,
    Eligible,
    Limits,
    Mask,
    Right,
    kept_account,
    namespace_account,
)
from aliquot.engine.policies.over_quota import Rows
from aliquot.engine.policies.queues.claimant import QueueClaimant
from aliquot.engine.policies.queues.deserved import Deserved
from aliquot.engine.policies.queues.drf import DominantShares
from aliquot.engine.policies.queues.gates import QueueGates
from aliquot.engine.policies.queues.preemption import QueuePreemption
from aliquot.engine.policies.shares import CurrentShares
from aliquot.engine.sharing.waterfill import fill
from aliquot.engine.state import State


class _LimitRules(NamedTuple):
    """Which limits apply to a rank, and which of them are soft."""

    by_turn: bool = False
    """Limit each namespace to what it has beyond its share of what will be left."""
    soft_namespaces: bool = False
    """The last victim may take the namespace with the largest share beyond its limit."""
    soft_queues: bool = False
    """The last victim may take a queue below what it deserves."""


_BY_QUEUE = (_LimitRules(), _LimitRules(soft_queues=True))
_BY_TURN = (_LimitRules(True), _LimitRules(True, True), _LimitRules(True, True, True), *_BY_QUEUE)


class QueueReclaim(reclaim_rules.RankedReclaim):
    """Which pods of queues may be evicted.

    First pods of other queues, then, by the order of turns read backwards, pods of the claim's own
    queue (see `preemption`).
    """

    preempts_equals = True

    def __init__(
        self,
        state: State,
        shares: CurrentShares[Deserved],
        drf: DominantShares,
        gates: QueueGates,
        priority_bands: bool,
    ) -> None:
        self._state = state
        self._shares = shares
        self._drf = drf
        self._gates = gates
        self._priority_bands = priority_bands

    def by_rank(
        self, claimant: reclaim_rules.Claimant, node_class: str | None
    ) -> Iterator[list[Eligible]]:
        """Within deserved, pods of queues above theirs; then pods of its own queue."""
        if self._gates.admission_gate(claimant.claim, node_class) is not None:
            return
        queue_claimant = QueueClaimant(claimant, node_class, self._shares.read(), self._drf)
        yield from _between_queues(queue_claimant)
        yield from QueuePreemption(queue_claimant, self._priority_bands).eligible_victims()


def _between_queues(claimant: QueueClaimant) -> Iterator[list[Eligible]]:
    """Pods of queues above what they deserve, if the claim's own queue stays within that."""
    if _is_above_max(claimant):
        return  # above its own capability: evicting pods of other queues does not help
    deserved = claimant.deserved
    beyond = {
        row
        for row, amount in claimant.charge
        if deserved.after_leaving(row, claimant.slot) + amount > deserved.get(row, claimant.slot)
    }
    if beyond and beyond.issuperset(claimant.asked_for):
        return
    rows = {right.row for right in claimant.general.rights}
    nodes_by_rows = reclaim_rules.by_shortage(claimant.state, claimant.claim, claimant.charge, rows)
    over_deserved = {rows: _OverDeserved(claimant, rows, beyond) for rows in nodes_by_rows}
    over_deserved = {rows: each for rows, each in over_deserved.items() if each.slots}
    several = any(each.has_several_namespaces for each in over_deserved.values())
    for rules in _BY_TURN if several else _BY_QUEUE:
        yield [each.eligible(nodes_by_rows[rows], rules) for rows, each in over_deserved.items()]


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

    def __init__(self, claimant: QueueClaimant, rows: Rows, beyond: set[int]) -> None:
        self._claimant = claimant
        self._beyond = frozenset(Right(claimant.slot, row) for row in beyond)
        asks = {row: amount for row, amount in claimant.charge if row in beyond}
        taken = {row: _used_by_others(claimant, row, amount) for row, amount in asks.items()}
        self._needed = {row: amount for row, amount in taken.items() if amount > 0}
        """What other queues must free of what the claim takes above deserved."""
        self._state = claimant.state
        self._deserved = claimant.deserved
        self._rows = rows
        others = set(claimant.state.bound_pods.quotas()) - {
            claimant.slot,
            claimant.state.tree.slots[OUTSIDE],
        }
        self.slots = [slot for slot in sorted(others) if self._is_over_deserved(slot, beyond)]
        self.has_several_namespaces = any(len(self._namespaces(slot)) > 1 for slot in self.slots)
        """Has any of them several namespaces?"""

    def _is_over_deserved(self, slot: int, beyond: set[int]) -> bool:
        """Is it above deserved, and each queue above it that is not above the claim's queue?

        Where the claim itself goes above deserved in a resource, only queues that deserve none of
        that resource count.
        """
        quotas, names = self._state.tree.quotas, self._state.tree.slots.names
        return all(
            quotas[str(names[each])].reclaimable
            and any(self._over(each, row) > 0 for row in self._rows)
            and not any(self._deserved.get(row, each) for row in beyond)
            for each in self._accounts(slot)
        )

    def _accounts(self, slot: int) -> list[int]:
        lineage = self._state.tree.lineage(str(self._state.tree.slots.names[slot]))
        return [each for each in lineage if each not in self._claimant.lineage]

    def _over(self, slot: int, row: int) -> int:
        return self._deserved.after_leaving(row, slot) - self._deserved.get(row, slot)

    def eligible(self, nodes: Mask, rules: _LimitRules) -> Eligible:
        """Their pods, with the limits that these rules set."""
        root = self._state.tree.slots[ROOT]
        affected = np.zeros(len(self._state.tree.slots) + 1, dtype=bool)
        affected[self.slots] = True
        limits, last = Limits(), set[tuple[Account, int]]()
        for each in sorted({account for slot in self.slots for account in self._accounts(slot)}):
            over = {row: n for row in self._rows if (n := self._over(each, row)) > 0}
            limits |= {(each, row): amount for row, amount in over.items()}
            last |= {(each, row) for row in over if rules.soft_queues}
            limits |= self._kept_limits(each, set(over))
        for slot in self.slots if rules.by_turn else ():
            limits |= self._turn_limits(slot)
            last |= self._soft_namespaces(slot) if rules.soft_namespaces else set()
        return Eligible(
            self._claimant.evictable & affected[self._state.bound_pods.quota],
            Reason.QUEUE_RECLAIMED,
            self._explain,
            nodes,
            limits,
            soft=frozenset(last),
            rights={Right(root, row): amount for row, amount in self._needed.items()},
            waived=self._beyond,
        )

    def _kept_limits(self, slot: int, over: set[int]) -> Limits:
        """Limits that keep a queue's guarantee, as long as it has it.

        And what it has of its fixed `deserved`, if it is above deserved only in other resources.
        """
        quota = self._state.tree.quotas[str(self._state.tree.slots.names[slot])]
        guarantee, fixed = dict(self._state.resources.vector(quota.min)), self._deserved.fixed(slot)
        kept = guarantee if over & fixed.keys() else guarantee | fixed
        limits = Limits()
        for row, low in kept.items():
            spare = self._deserved.after_leaving(row, slot) - low
            if spare >= 0 or row in fixed:
                limits[kept_account(slot), row] = max(spare, 0)
        return limits

    def _namespaces(self, slot: int) -> list[str]:
        return self._claimant.drf.namespaces(str(self._state.tree.slots.names[slot]))

    def _turn_limits(self, slot: int) -> Limits:
        """Limits on namespaces: what each has beyond its share, by weight, of what will be left."""
        queue, drf = str(self._state.tree.slots.names[slot]), self._claimant.drf
        namespaces, asks, limits = self._namespaces(slot), dict(self._claimant.charge), Limits()
        for row in (row for row in self._rows if self._over(slot, row) > 0):
            has = [drf.of_namespace(queue, each).get(row, 0) for each in namespaces]
            rest = sum(has) - min(asks.get(row, 0), self._over(slot, row))
            weights = [drf.weight(each) for each in namespaces]
            parts = fill(rest, has, [0] * len(has), weights)
            for namespace, had, part in zip(namespaces, has, parts, strict=True):
                limits[namespace_account(queue, namespace), row] = had - part
        return limits

    def _soft_namespaces(self, slot: int) -> set[tuple[Account, int]]:
        """The accounts of the namespaces with the largest share over weight."""
        queue, drf = str(self._state.tree.slots.names[slot]), self._claimant.drf
        shares = {
            each: drf.share(drf.of_namespace(queue, each)) / drf.weight(each)
            for each in self._namespaces(slot)
        }
        most = max(shares.values(), default=None)
        return {
            (namespace_account(queue, each), row)
            for each, share in shares.items()
            for row in self._rows
            if share == most
        }

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
