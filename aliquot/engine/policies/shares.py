"""Shares in a tree: what `hierarchy` (runtime) and `queues` (deserved) have in common.

Each quota of the tree has a share of what its parent has, worked out anew when demand changes. A
claim may start while its quota and every ancestor stay within their share. Both policies differ in
how the share is worked out, and in what they make of a claim above it.
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.quota_tree import ROOT
from aliquot.engine.columns import Columns, Vector
from aliquot.engine.model.explanation import GateFigure
from aliquot.engine.model.quantity import LIMIT, text
from aliquot.engine.model.reasons import Reason, Refusal, Watch, ask_text, held_text
from aliquot.engine.policies.eligible import Right, Rights
from aliquot.engine.policies.gates import parts_are_owed
from aliquot.engine.policies.interface import Gates
from aliquot.engine.policies.usage import INFINITE, ratio, taken, within_max
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State


class ShareBook(Protocol):
    """The shares of all quotas, by row and account; an account is a quota's slot, as a rule."""

    rows: frozenset[int]
    """The resources that are shared."""
    amounts: Columns
    """The share of each account; at the root of a tree, what there is to share."""
    unshared: list[int]
    """The quotas (by slot) outside the tree: what they use is not there to share."""

    @abstractmethod
    def refresh(self) -> list[int]:
        """Bring the shares up to date; the accounts whose share has changed."""

    @abstractmethod
    def accounts(self, quota: str) -> tuple[int, ...]:
        """The accounts whose shares bound a quota's pods: its own first, then its ancestors'."""

    def account(self, slot: int) -> int:
        """The account whose share bounds a quota's own pods."""
        return slot

    def quota_of(self, account: int) -> int:
        """The slot of the quota that an account belongs to."""
        return account

    def rows_of(self, account: int) -> frozenset[int]:
        """The resources that are shared in the tree of an account."""
        return self.rows

    @abstractmethod
    def root(self, quota: str) -> int:
        """The account of all quotas of the tree that a quota is in."""

    @abstractmethod
    def in_use(self, row: int, root: int) -> int:
        """What all quotas of a tree together use or are nominated for."""

    @abstractmethod
    def unused_guarantees(self, row: int, lineage: tuple[int, ...]) -> int:
        """The unused guarantees of quotas that do not lend, other than those of this lineage."""

    @abstractmethod
    def part(self, columns: Columns, row: int, account: int) -> int:
        """An amount of an account in the columns of the ledger."""

    @abstractmethod
    def taken(self, row: int, account: int) -> int:
        """What is used or nominated in an account."""

    @abstractmethod
    def after_leaving(self, row: int, account: int) -> int:
        """What is used or nominated in an account once the leaving pods are gone."""


B = TypeVar("B", bound=ShareBook)


class CurrentShares(Generic[B]):
    """A share book that is brought up to date when it is read, and which shares have changed.

    A question between two cycles may bring it up to date as well. What counts as changed in the
    next cycle is the same whether or not a question was asked.
    """

    def __init__(self, state: State, book: B) -> None:
        self._state = state
        self.book = book
        """The shares as they were last worked out."""
        self._changed: dict[str, None] = {}
        self._before_questions: NDArray[np.int64] | None = None

    def read(self) -> B:
        """The shares as they are now, to decide by."""
        changed = self.book.refresh()
        if self._before_questions is not None and not self._state.ledger.speculative:
            changed = _differences(self._before_questions, self.book.amounts.data)
            self._before_questions = None
        if changed:
            self._note_changed(changed)
        return self.book

    def _note_changed(self, accounts: list[int]) -> None:
        names = self._state.tree.slots.names
        for account in accounts:
            name = names[self.book.quota_of(account)]
            if name:
                self._changed[name] = None

    def refresh_for_question(self) -> None:
        """Bring the shares up to date for a question."""
        if self._before_questions is None:
            self._before_questions = self.book.amounts.data.copy()
        self.book.refresh()

    def changed(self) -> dict[str, None]:
        """The quotas whose share has changed since this was last called."""
        self.read()
        changed, self._changed = self._changed, {}
        return changed


def _differences(before: NDArray[np.int64], now: NDArray[np.int64]) -> list[int]:
    """The accounts whose shares differ; there may be more resources and accounts than before."""
    padded = np.zeros_like(now)
    padded[: before.shape[0], : before.shape[1]] = before
    differs: NDArray[np.bool_] = (padded != now).any(axis=0)
    return [int(account) for account in differs.nonzero()[0]]


def dominant_ratio(book: ShareBook, account: int) -> int:
    """What is used or nominated of the share, in the resource of which that is the most."""
    most, share = 0, 1
    for row in book.rows_of(account):
        used = book.taken(row, account)
        if used:
            whole = book.amounts.get(row, account)
            if not whole:
                return INFINITE
            if used * share > most * whole:
                most, share = used, whole
    return ratio(most, share)


def in_use(state: State, book: ShareBook, row: int) -> int:
    """What all quotas together use or are nominated for, but for those outside the shares."""
    outside = sum(taken(state, row, slot) for slot in book.unshared)
    return taken(state, row, state.tree.slots[ROOT]) - outside


class ShareGates(Gates, Generic[B]):
    """Used, plus nominations, plus the claim, within the share of its quota and every ancestor."""

    noun: str
    """How the policy calls a quota, for messages."""
    share_word: str
    """How the policy names the share, for messages."""
    own_reason: Reason
    ancestor_reason: Reason

    def __init__(self, state: State, shares: CurrentShares[B]) -> None:
        self._state = state
        self._shares = shares

    def refresh(self) -> None:
        """Bring the shares up to date."""
        self._shares.read()

    def begin(self) -> dict[str, None]:
        """Refresh the shares; the quotas whose share has changed: claims may find victims there."""
        changed = self._shares.changed()
        for name in changed:
            self._state.changes.victims.append(name)
        return changed

    @abstractmethod
    def admission_gate(self, claim: Claim, node_class: str | None) -> Refusal | None:
        """Why the claim may not start in its quota, whatever the shares are."""

    @abstractmethod
    def may_use_idle(self, claim: Claim) -> bool:
        """May the claim use idle capacity beyond its share?"""

    def share_for(self, claim: Claim, row: int, account: int) -> int:
        """The share that bounds the claim in an account: never less than the account's own."""
        return self._shares.book.amounts.get(row, account)

    def share_to_keep(self, row: int, account: int) -> int:
        """The share that an account may use after a preemption."""
        return self._shares.book.amounts.get(row, account)

    def gate(self, claim: Claim, node_class: str | None) -> Refusal | None:
        """Used, plus nominations, plus the claim, within the share, up to the root."""
        refusal = self.admission_gate(claim, node_class)
        if refusal is not None or claim.quota is None or self.is_outside(claim):
            return refusal
        book = self._shares.read()
        accounts = book.accounts(claim.quota)
        rows = book.rows_of(accounts[0])
        shares, width = book.amounts.cells, book.amounts.width
        charge = [pair for pair in claim.charge(node_class) if pair[0] in rows]
        for account in accounts:
            for row, amount in charge:
                then = book.taken(row, account) + amount
                if then <= shares[row * width + account]:
                    continue  # what bounds the claim is this, or more
                if then > self.share_for(claim, row, account):
                    return self._refusal(claim, account, row, amount)
        return None

    def figures(self, claim: Claim, node_class: str | None) -> Iterator[GateFigure]:
        """The share of its quota and of those above it, and what lasting pods may use of it."""
        if claim.quota is None or self.is_outside(claim):
            return
        yield from self.shields.figures(claim, node_class)
        book = self._shares.read()
        for account in book.accounts(claim.quota):
            name = str(self._state.tree.slots.names[book.quota_of(account)])
            for row, amount in claim.charge(node_class):
                if row in book.rows:
                    resource = self._state.resources.names[row]
                    most = self.share_for(claim, row, account)
                    used = book.taken(row, account)
                    yield GateFigure(name, resource, self.share_word, most, used, amount)

    def idle_gate(self, claim: Claim, node_class: str | None) -> Refusal | None:
        """Idle capacity may be used beyond the share, except unused guarantees of others."""
        if claim.quota is None or not self.may_use_idle(claim):
            return self.gate(claim, node_class)
        if self.fits_idle(claim, node_class):
            return self.admission_gate(claim, node_class)
        return self.gate(claim, node_class)

    def fits_idle(self, claim: Claim, node_class: str | None) -> bool:
        """Does the claim fit what no pod uses and no other quota is guaranteed?"""
        book = self._shares.read()
        lineage, root = self._state.tree.lineage(str(claim.quota)), book.root(str(claim.quota))
        return all(
            book.in_use(row, root) + amount + book.unused_guarantees(row, lineage)
            <= book.amounts.get(row, root)
            for row, amount in self._beyond_share(claim, node_class)
        )

    def _beyond_share(self, claim: Claim, node_class: str | None) -> Vector:
        """Of what the claim is charged, what must be idle for it to start on idle capacity."""
        book = self._shares.read()
        rows = book.rows_of(self._state.tree.slots[str(claim.quota)])
        return tuple(pair for pair in claim.charge(node_class) if pair[0] in rows)

    def rights(self, claim: Claim, node_class: str | None) -> Rights:
        """What must come free in its quota and every ancestor, to be within share and max.

        A quota outside the tree of shares has max alone.
        """
        rights: Rights = {}
        if claim.quota is None:
            return rights
        state, book = self._state, self._shares.read()
        lineage, outside = state.tree.lineage(claim.quota), self.is_outside(claim)
        rows = book.rows_of(lineage[0])
        for account in lineage if outside else book.accounts(claim.quota):
            slot = account if account in lineage else lineage[0]
            for row, amount in claim.charge(node_class):
                most = state.tree.max.get(row, account)
                if row in rows and not outside:
                    most = min(most, self.share_to_keep(row, account))
                short = book.after_leaving(row, account) + amount - most
                if most < LIMIT and short > rights.get(Right(slot, row), 0):
                    rights[Right(slot, row)] = short
        return rights

    def is_owed(self, claim: Claim, besides: Vector = ()) -> bool:
        """Is the claim within its quota's share once leaving pods are gone, nominations aside?"""
        if claim.parts:
            return parts_are_owed(self._owes, claim, besides)
        return self._owes(claim, besides)

    def _owes(self, claim: Claim, besides: Vector) -> bool:
        """The same for a claim of one quota."""
        if claim.quota is None or self.is_outside(claim):
            return claim.quota is not None
        book, before = self._shares.read(), dict(besides)
        account = book.account(self._state.tree.slots[claim.quota])
        rows = book.rows_of(account)
        return all(
            self._staying(row, account) + before.get(row, 0) + amount
            <= book.amounts.get(row, account)
            for row, amount in claim.charge(None)
            if row in rows
        )

    def owes_all_held(self, quota: str) -> bool:
        """Is the quota with all that is held in it within its share, wherever something is held?"""
        state, book = self._state, self._shares.read()
        if state.tree.quotas[quota].unshared:
            return True
        account = book.account(state.tree.slots[quota])
        rows = sorted(book.rows_of(account))
        held = ((row, book.part(state.ledger.held, row, account)) for row in rows)
        return all(
            self._staying(row, account) + amount <= book.amounts.get(row, account)
            for row, amount in held
            if amount
        )

    def _staying(self, row: int, account: int) -> int:
        """What is used in an account by pods that are not leaving."""
        state, book = self._state, self._shares.book
        used = book.part(state.ledger.used, row, account)
        return used - book.part(state.leaving.charge, row, account)

    def could_start(self, claim: Claim, node_class: str | None) -> bool:
        """Not if the claim asks for more than the whole share of its quota or an ancestor."""
        if claim.quota is None or self.is_outside(claim):
            return within_max(self._state, claim, node_class)
        book = self._shares.read()
        accounts = book.accounts(claim.quota)
        rows = book.rows_of(accounts[0])
        return within_max(self._state, claim, node_class) and all(
            amount <= book.amounts.get(row, account)
            for account in accounts
            for row, amount in claim.charge(node_class)
            if row in rows
        )

    def is_outside(self, claim: Claim) -> bool:
        """Has the claim no quota, or one outside the tree of shares?"""
        return claim.quota is None or self._state.tree.quotas[claim.quota].unshared

    def _tree_words(self, quota: str) -> str:
        """In which tree a quota is, for a message; nothing where it shares all nodes."""
        tree = self._state.tree.tree_of(quota)
        if not tree:
            return ""
        return f" (tree {tree}{'' if tree in self._state.tree.trees else ', which has no nodes'})"

    def _refusal(self, claim: Claim, account: int, row: int, amount: int) -> Refusal | None:
        """The refusal with its numbers; None where no node could hold the claim even when empty.

        Then placement refuses it, with the reason that matters. A gang that lacks pods asks for
        what several nodes may hold.
        """
        state, book = self._state, self._shares.book
        if not claim.missing and not all(map(state.placement.could_hold, claim.asks)):
            return None
        own = account not in state.tree.lineage(str(claim.quota))[1:]
        name = str(claim.quota) if own else str(state.tree.slots.names[account])
        above = ("" if own else f", above {claim.quota}") + self._tree_words(str(claim.quota))
        resource, share = state.resources.names[row], book.amounts.get(row, account)
        held = book.part(state.ledger.held, row, account)
        return Refusal(
            self.own_reason if own else self.ancestor_reason,
            f"{self.noun} {name}{above}: {self.share_word} {text(resource, share)} {resource}, "
            f"used {text(resource, book.taken(row, account) - held)}{held_text(resource, held)}, "
            f"{ask_text(claim.size, resource, amount)}",
            quota=name,
            resource=resource,
            watch=(Watch(quota=name),),
        )
