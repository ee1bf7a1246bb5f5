"""The gate of borrowing: how much all quotas together may use, and what a claim lacks of it.

A claim may start while all quotas together stay within the sum of their min: what a quota uses
above its min is idle min of other quotas. With `borrow: freeCapacity`, what the cluster has beyond
the sum of min is lent as well. To a quota whose own min does not name a resource, what the nodes
have is lent in any case, less the unused min of the quotas that name it; and what it uses does not
count in the sum of those. Shared by `capacity` and `fair`.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.quota_tree import OUTSIDE, ROOT
from aliquot.engine.columns import Vector, exact_sum
from aliquot.engine.model.explanation import GateFigure
from aliquot.engine.model.knobs import Borrow
from aliquot.engine.model.quantity import LIMIT, text
from aliquot.engine.model.reasons import Reason, Refusal, Watch, ask_text, held_text
from aliquot.engine.policies.eligible import Right, Rights
from aliquot.engine.policies.gates import parts_are_owed
from aliquot.engine.policies.interface import Gates
from aliquot.engine.policies.over_quota import Rows
from aliquot.engine.policies.shields import Shields
from aliquot.engine.policies.usage import after_leaving, staying, taken, within_max
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

Used = Callable[[State, int, int], int]
"""How much of a resource counts as used in an account: now, or once leaving pods are gone."""


class _Sum(NamedTuple):
    """What all quotas together may use, what they use, and what a claim adds to that."""

    slot: int
    most: int
    used: int
    asks: int
    bound: str
    scope: str = "all quotas together"

    @property
    def beyond(self) -> int:
        """By how much the sum would be exceeded."""
        return self.used + self.asks - self.most


class Borrowing(Gates):
    """What `capacity` and `fair` share: quotas lend each other their idle min."""

    def __init__(self, state: State, borrow: Borrow) -> None:
        self._state = state
        self._lend_free = borrow == "freeCapacity"
        self.shields = Shields(state, self._shield_rows, state.tree.min.get, "quota", "min")
        self._short: frozenset[int] = frozenset()
        """The resources of which more is requested than there is."""

    def gate(self, claim: Claim, node_class: str | None) -> Refusal | None:
        """Used by all quotas, plus nominations, plus the claim, must stay within the sum of min.

        Pods that are not preemptible also within their own quota's min.

        Only resources that the claim asks for count, and of those only the ones that some quota's
        min names.
        """
        if claim.quota is None:
            return None
        if not claim.preemptible and (above := self.shields.refusal(claim, node_class)) is not None:
            return above
        row = self.exceeded_row(claim, node_class)
        if row is None:
            return None
        amount = dict(claim.charge(node_class))[row]
        return self._refusal(claim, row, self._against_sum(claim.quota, row, amount, taken))

    def exceeded_row(self, claim: Claim, node_class: str | None = None) -> int | None:
        """The first resource in which the sum of min would be exceeded."""
        if claim.quota is None:
            return None
        state, tree = self._state, self._state.tree
        sums, used, held = tree.sums_of_min, state.ledger.used, state.ledger.held
        # what its min names passes while it is within the sum of min: no bound is less
        sure = tree.named(tree.slots[claim.quota]) if not tree.groups else frozenset()
        for row, amount in claim.charge(node_class):
            cell = row * used.width + tree.root
            if row in sure and used.cells[cell] + held.cells[cell] + amount <= sums[row]:
                continue
            if sums[row] >= 0 and self._against_sum(claim.quota, row, amount, taken).beyond > 0:
                return row
        return None

    def figures(self, claim: Claim, node_class: str | None) -> Iterator[GateFigure]:
        """What the gate compares: the sum of min, and the min that is for lasting pods."""
        yield from self.shields.figures(claim, node_class)
        for row, amount in claim.charge(node_class) if claim.quota is not None else ():
            found = self._against_sum(str(claim.quota), row, amount, taken)
            if found.most < LIMIT:
                name = self._state.resources.names[row]
                yield GateFigure(None, name, found.bound, found.most, found.used, found.asks)

    def _shield_rows(self, slot: int) -> Rows:
        """The resources in which a quota's pods that are not preemptible are held against its min.

        Those that its min names; of a quota whose min names nothing, all that any min names.
        """
        tree = self._state.tree
        if slot == tree.slots[OUTSIDE]:
            return ()
        rows = tree.guaranteed_rows()
        return tuple(row for row in rows if tree.names(slot, row)) or rows

    def _refusal(self, claim: Claim, row: int, bound: _Sum) -> Refusal:
        resource = self._state.resources.names[row]
        # what is held within the min of lending groups is no part of what is used here
        held = min(self._state.ledger.held.get(row, bound.slot), max(bound.used, 0))
        hope = (
            "it waits until enough is given back"
            if bound.asks <= bound.most
            else "that is more than all of it, whatever is given back"
        )
        return Refusal(
            Reason.BORROWING_EXHAUSTED,
            f"{bound.scope}: {bound.bound} {text(resource, bound.most)} {resource}, "
            f"used {text(resource, bound.used - held)}{held_text(resource, held)}, "
            f"{ask_text(claim.size, resource, bound.asks)}; {hope}",
            quota=claim.quota,
            resource=resource,
            watch=(Watch(quota=ROOT), Watch(quota=OUTSIDE)),
        )

    def rights(self, claim: Claim, node_class: str | None) -> Rights:
        """What must come free in the sum of min and below max, once leaving pods are gone."""
        return self._rights(claim, node_class)

    def other_rights(self, claim: Claim, node_class: str | None) -> Rights | None:
        """In a lending group, what must come free for the claim to take nothing from others."""
        if claim.quota is None or self._state.tree.quotas[claim.quota].group == "":
            return None
        found = self._rights(claim, node_class, inside_group=True)
        return found if found != self._rights(claim, node_class) else None

    def _rights(self, claim: Claim, node_class: str | None, inside_group: bool = False) -> Rights:
        rights: Rights = {}
        if claim.quota is None:
            return rights
        root = self._state.tree.slots[ROOT]
        group = self._state.tree.groups.get(self._state.tree.quotas[claim.quota].group, root)
        for row, amount in claim.charge(node_class):
            beyond = self._against_sum(claim.quota, row, amount, after_leaving).beyond
            shortages = {root: beyond}
            low = self._state.tree.min.get(row, group)
            inside = after_leaving(self._state, row, group) + amount - low
            if inside_group and 0 < inside < beyond:
                shortages = {group: inside}
            for slot in self._state.tree.path(claim.quota)[:-1]:
                most = self._state.tree.max.get(row, slot)
                shortages[slot] = (
                    after_leaving(self._state, row, slot) + amount - most if most < LIMIT else 0
                )
            rights.update({Right(slot, row): n for slot, n in shortages.items() if n > 0})
        return rights

    def _against_sum(self, quota: str, row: int, amount: int, used: Used) -> _Sum:
        """What all quotas together may use and do use, with the claim.

        A lending group lends its min only inside the group: what counts for it is what it uses
        beyond that.
        """
        tree = self._state.tree
        root = tree.slots[ROOT]
        later = used is after_leaving
        most = self._lendable(row, later)
        if most is None or most >= LIMIT:
            return _Sum(root, LIMIT, 0, 0, self._bound_name)
        in_use = used(self._state, row, root)
        if not tree.names(tree.slots[quota], row):
            free = self._capacity(row, later) - self._unused_min(row, used)
            if free > most:
                return _Sum(root, free, in_use, amount, "nodes less unused min")
            return _Sum(root, most, in_use, amount, self._bound_name)
        in_use -= _sum_over(self._state, row, tree.unnamed(row), used)
        if not tree.groups:
            return _Sum(root, most, in_use, amount, self._bound_name)
        own = tree.groups.get(tree.quotas[quota].group)
        for slot in tree.groups.values():
            uses, low = used(self._state, row, slot), tree.min.get(row, slot)
            in_use -= min(uses, low)
            most -= low
            if slot == own:
                amount = max(uses + amount - low, 0) - max(uses - low, 0)
        scope = "what is lent to everybody"
        bound = self._bound_name
        return _Sum(root, most if amount else max(most, in_use), in_use, amount, bound, scope)

    def _unused_min(self, row: int, used: Used) -> int:
        """The min that the quotas which name a resource do not use."""
        tree = self._state.tree
        leaves = tree.leaf_slots
        lows = tree.min.data[row][leaves]
        return exact_sum(np.maximum(lows - _amounts(self._state, row, leaves, used), 0))

    def excess(self, quota: str) -> Rights:
        """What a quota borrows although all quotas together are above the sum of min.

        In what its own min names: in nothing else its pods are held to that sum when they start.
        """
        slot, root = self._state.tree.slots[quota], self._state.tree.slots[ROOT]
        found: Rights = {}
        for row in range(len(self._state.resources)):
            most = self._lendable(row, later=True) if self._state.tree.names(slot, row) else None
            if most is not None and most < LIMIT:
                borrowed = staying(self._state, row, slot) - self._state.tree.min.get(row, slot)
                over = min(borrowed, staying(self._state, row, root) - most)
                if over > 0:
                    found[Right(root, row)] = over
        return found

    def is_owed(self, claim: Claim, besides: Vector = ()) -> bool:
        """Is the claim within its quota's min in what is short, once leaving pods are gone?

        Nominations aside. Where nothing is short that it asks for, in all that it asks for.
        """
        if claim.parts:
            return parts_are_owed(self._owes, claim, besides)
        return self._owes(claim, besides)

    def _owes(self, claim: Claim, besides: Vector) -> bool:
        """The same for a claim of one quota."""
        if claim.quota is None:
            return False
        state, tree = self._state, self._state.tree
        slot, sums = tree.slots[claim.quota], tree.sums_of_min
        charge = [pair for pair in claim.charge(None) if sums[pair[0]] >= 0]
        short = self._short and [pair for pair in charge if pair[0] in self._short]
        named, before, guaranteed = tree.named(slot), dict(besides), False
        used, leaving, low = state.ledger.used, state.leaving.charge.cells, tree.min.cells
        for row, amount in short or charge:
            if row in named:
                guaranteed, cell = True, row * used.width + slot
                stays = used.cells[cell] - leaving[cell] + amount
                if stays + (before.get(row, 0) if before else 0) > low[cell]:
                    return False
        return guaranteed or not charge

    def owes_all_held(self, quota: str) -> bool:
        """Is the quota with all that is held in it within its min, wherever something is held?"""
        state, tree = self._state, self._state.tree
        slot, held = tree.slots[quota], state.ledger.held
        return all(
            tree.names(slot, row)
            and staying(state, row, slot) + held.get(row, slot) <= tree.min.get(row, slot)
            for row in tree.guaranteed_rows()
            if held.get(row, slot)
        )

    def refresh(self) -> None:
        """Note the resources of which more is requested than there is."""
        state = self._state
        root, outside = state.tree.slots[ROOT], state.tree.slots[OUTSIDE]
        columns = (state.ledger.used, state.ledger.held, state.ledger.wanted)
        self._short = frozenset(
            row
            for row in state.tree.guaranteed_rows()
            if sum(column.get(row, root) for column in columns)
            > min(self._lendable(row) or 0, self._capacity(row))
            - state.ledger.wanted.get(row, outside)
        )

    def could_start(self, claim: Claim, node_class: str | None) -> bool:
        """Not if the claim asks for more than max, or more than all quotas together may use."""
        if claim.quota is None:
            return True
        lendable = ((self._lendable(row), amount) for row, amount in claim.charge(node_class))
        return within_max(self._state, claim, node_class) and all(
            most is None or amount <= most for most, amount in lendable
        )

    def spare(self, quota: str, row: int) -> int:
        """What a quota can use without being reclaimed from at once.

        Its min, or what is left once all other quotas have what they request of theirs.
        """
        tree, ledger = self._state.tree, self._state.ledger
        own, leaves = tree.slots[quota], tree.leaf_slots
        others = leaves[leaves != own]
        idle_min = tree.min.data[row][others]
        for part in (
            ledger.used.data[row][others] - self._state.leaving.charge.data[row][others],
            ledger.held.data[row][others],
            ledger.wanted.data[row][others],
        ):
            idle_min = idle_min - np.minimum(part, idle_min)
        owed = exact_sum(tree.min.data[row][others] - idle_min)
        capacity = self._capacity(row, later=True)
        lendable = self._lendable(row, later=True) if tree.names(own, row) else None
        most = capacity if lendable is None else min(capacity, lendable)
        return max(tree.min.get(row, own), most - owed)

    @property
    def _bound_name(self) -> str:
        return "guaranteed or free" if self._lend_free else "sum of min"

    def _lendable(self, row: int, later: bool = False) -> int | None:
        """What all quotas together may use of this resource; None if none guarantees any of it.

        Now, or `later`, once leaving pods are gone.
        """
        guaranteed = self._state.tree.guaranteed(row)
        if guaranteed is None or not self._lend_free:
            return guaranteed
        return max(guaranteed, self._capacity(row, later))

    def _capacity(self, row: int, later: bool = False) -> int:
        """What the nodes have for quotas: less what pods without a quota use."""
        state, outside = self._state, self._state.tree.slots[OUTSIDE]
        if not later:
            return state.capacity.lent(row) - state.ledger.used.get(row, outside)
        return state.capacity.lent(row, state.leaving.room) - staying(state, row, outside)


def _sum_over(state: State, row: int, slots: NDArray[np.int64], used: Used) -> int:
    """What counts as used in these accounts together."""
    return exact_sum(_amounts(state, row, slots, used)) if len(slots) else 0


def _amounts(state: State, row: int, slots: NDArray[np.int64], used: Used) -> NDArray[np.int64]:
    """What counts as used in each of these accounts."""
    amounts: NDArray[np.int64] = state.ledger.used.data[row][slots]
    if state.ledger.holding:
        amounts = amounts + state.ledger.held.data[row][slots]
    return amounts - state.leaving.charge.data[row][slots] if used is after_leaving else amounts
