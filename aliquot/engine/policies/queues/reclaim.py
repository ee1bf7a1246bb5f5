"""Who gives back between queues: those who use more than they deserve of what is short.

A claim takes back only if its queue, and all above it, end within what they deserve. They give down
to what they deserve; the last one beyond that, if nothing else will do; never below what is
guaranteed to them. Of their namespaces, those give first who had the last turns.
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
from aliquot.engine.sharing.waterfill import fill


class _How(NamedTuple):
    """By which rules they give."""

    in_turn: bool = False
    """Those first who had the last turns."""
    last_served: bool = False
    """Of them, the last one beyond what is theirs."""
    soft: bool = False
    """Of queues, the last one beyond what they deserve."""


_PLAIN = (_How(), _How(soft=True))
_IN_TURN = (_How(True), _How(True, True), _How(True, True, True), *_PLAIN)


def offers(plea: QueueClaimant) -> Iterator[list[Eligible]]:
    """From queues beyond what they deserve, if its own stays within that."""
    if _is_above_max(plea):
        return  # its own capability: no other queue can give that
    deserved = plea.deserved
    beyond = {
        row
        for row, amount in plea.charge
        if deserved.soon(row, plea.slot) + amount > deserved.get(row, plea.slot)
    }
    if beyond and beyond.issuperset(plea.asked_for):
        return
    rows = {right.row for right in plea.asking.rights}
    groups = reclaim_rules.by_shortage(plea.state, plea.claim, plea.charge, rows)
    givers = {rows: _Givers(plea, rows, beyond) for rows in groups}
    givers = {rows: each for rows, each in givers.items() if each.slots}
    several = any(each.crowded for each in givers.values())
    for how in _IN_TURN if several else _PLAIN:
        yield [each.offer(groups[rows], how) for rows, each in givers.items()]


def _is_above_max(plea: QueueClaimant) -> bool:
    return any(
        plea.deserved.soon(row, plea.slot) + amount > plea.state.tree.max.get(row, plea.slot)
        for row, amount in plea.charge
    )


def _used_by_others(plea: QueueClaimant, row: int, amount: int) -> int:
    """How much of this is not idle, or is guaranteed to others."""
    deserved = plea.deserved
    in_use = deserved.soon(row, plea.state.tree.slots[ROOT]) + deserved.kept_back(row, plea.line)
    return in_use + amount - deserved.total[row]


class _Givers:
    """The queues that use more of what is short than they deserve."""

    def __init__(self, plea: QueueClaimant, rows: Rows, beyond: set[int]) -> None:
        self._plea = plea
        self._beyond = frozenset(Right(plea.slot, row) for row in beyond)
        asks = {row: amount for row, amount in plea.charge if row in beyond}
        taken = {row: _used_by_others(plea, row, amount) for row, amount in asks.items()}
        self._needed = {row: amount for row, amount in taken.items() if amount > 0}
        """What others use, or are sure of, of what the claim takes beyond what it deserves."""
        self._state = plea.state
        self._deserved = plea.deserved
        self._rows = rows
        others = set(plea.state.running.quotas()) - {plea.slot, plea.state.tree.slots[OUTSIDE]}
        self.slots = [slot for slot in sorted(others) if self._gives(slot, beyond)]
        self.crowded = any(len(self._namespaces(slot)) > 1 for slot in self.slots)
        """Are there several namespaces in any of them?"""

    def _gives(self, slot: int, beyond: set[int]) -> bool:
        """Is it, and each above it that is not above the claim, beyond what it deserves?

        Where the claim itself is beyond that in something, only of those who deserve none of it.
        """
        quotas, names = self._state.tree.quotas, self._state.tree.slots.names
        return all(
            quotas[str(names[each])].reclaimable
            and any(self._over(each, row) > 0 for row in self._rows)
            and not any(self._deserved.get(row, each) for row in beyond)
            for each in self._accounts(slot)
        )

    def _accounts(self, slot: int) -> list[int]:
        line = self._state.tree.lineage(str(self._state.tree.slots.names[slot]))
        return [each for each in line if each not in self._plea.line]

    def _over(self, slot: int, row: int) -> int:
        return self._deserved.soon(row, slot) - self._deserved.get(row, slot)

    def offer(self, nodes: Mask, how: _How) -> Eligible:
        """What they give: down to what they deserve, or the last one beyond that."""
        root = self._state.tree.slots[ROOT]
        gives = np.zeros(len(self._state.tree.slots) + 1, dtype=bool)
        gives[self.slots] = True
        limits, last = Limits(), set[tuple[Account, int]]()
        for each in sorted({account for slot in self.slots for account in self._accounts(slot)}):
            over = {row: n for row in self._rows if (n := self._over(each, row)) > 0}
            limits |= {(each, row): amount for row, amount in over.items()}
            last |= {(each, row) for row in over if how.soft}
            limits |= self._keeps(each, set(over))
        for slot in self.slots if how.in_turn else ():
            limits |= self._in_turn(slot)
            last |= self._last_served(slot) if how.last_served else set()
        return Eligible(
            self._plea.may_go & gives[self._state.running.quota],
            Reason.QUEUE_RECLAIMED,
            self._explain,
            nodes,
            limits,
            soft=frozenset(last),
            rights={Right(root, row): amount for row, amount in self._needed.items()},
            waived=self._beyond,
        )

    def _keeps(self, slot: int, over: set[int]) -> Limits:
        """What a queue keeps in any case: its guarantee, as long as it has that.

        And what it has of what was promised to it by name, if it is beyond only in something else.
        """
        quota = self._state.tree.quotas[str(self._state.tree.slots.names[slot])]
        guarantee, fixed = dict(self._state.resources.vector(quota.min)), self._deserved.fixed(slot)
        kept = guarantee if over & fixed.keys() else guarantee | fixed
        limits = Limits()
        for row, low in kept.items():
            spare = self._deserved.soon(row, slot) - low
            if spare >= 0 or row in fixed:
                limits[kept_account(slot), row] = max(spare, 0)
        return limits

    def _namespaces(self, slot: int) -> list[str]:
        return self._plea.dominance.namespaces(str(self._state.tree.slots.names[slot]))

    def _in_turn(self, slot: int) -> Limits:
        """What namespaces have beyond their parts of what will be left: they had the last turns."""
        queue, dominance = str(self._state.tree.slots.names[slot]), self._plea.dominance
        namespaces, asks, limits = self._namespaces(slot), dict(self._plea.charge), Limits()
        for row in (row for row in self._rows if self._over(slot, row) > 0):
            has = [dominance.of_namespace(queue, each).get(row, 0) for each in namespaces]
            rest = sum(has) - min(asks.get(row, 0), self._over(slot, row))
            weights = [dominance.weight(each) for each in namespaces]
            parts = fill(rest, has, [0] * len(has), weights)
            for namespace, had, part in zip(namespaces, has, parts, strict=True):
                limits[namespace_account(queue, namespace), row] = had - part
        return limits

    def _last_served(self, slot: int) -> set[tuple[Account, int]]:
        """Of its namespaces, those who have most by their weight."""
        queue, dominance = str(self._state.tree.slots.names[slot]), self._plea.dominance
        shares = {
            each: dominance.share(dominance.of_namespace(queue, each)) / dominance.weight(each)
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
        """Who is within what it deserves, and who beyond, with the numbers."""
        plea, deserved, names = self._plea, self._deserved, self._state.resources.names
        giver = str(self._state.tree.quota_of(victim))
        slot = self._state.tree.slots[giver]
        by_name = {names[row]: row for row in self._rows}
        over = (name for name in sorted(by_name) if self._over(slot, by_name[name]) > 0)
        name = next(over, min(by_name))
        row = by_name[name]
        return (
            f"queue {plea.queue} takes back what it deserves for {plea.claim.pods[0].path}: "
            f"deserves {text(name, deserved.get(row, plea.slot))} {name}, "
            f"used {text(name, deserved.soon(row, plea.slot))}, "
            f"{ask_text(plea.claim.size, name, dict(plea.charge).get(row, 0))}; "
            f"queue {giver} deserves {text(name, deserved.get(row, slot))}, "
            f"uses {text(name, deserved.soon(row, slot))}"
        )
