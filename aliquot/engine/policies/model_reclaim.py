"""Reclaim of cards of one model: for a claim within its quota's min of that model, and in all.

Under every policy it takes such cards from quotas above their own min of the model (0 if they name
none). Pods above their quota's min, or share, go first; then also pods within it, if their quota
can still have what it is owed: on cards that are idle, or that other quotas have beyond what they
are owed, of models that the nodes open to these pods have. What a quota uses within its own min of
a model is not taken by any other claim, whatever else it uses.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.quota_tree import OUTSIDE
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.quantity import text
from aliquot.engine.model.reasons import Reason
from aliquot.engine.policies.claimant import Claimant
from aliquot.engine.policies.eligible import Eligible, Limits, Mask
from aliquot.engine.policies.over_quota import split_at
from aliquot.engine.policies.shields import BoundOf
from aliquot.engine.policies.usage import after_leaving, staying
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

_Amounts = NDArray[np.int64]
OTHER = -1
"""In place of a model's row: cards of the models that no quota names."""


def kept_of_models(state: State, claim: Claim) -> Limits:
    """Limits that leave other quotas what they use within their mins of models."""
    own = () if claim.quota is None else state.tree.lineage(claim.quota)
    return {
        (slot, row): max(staying(state, row, slot) - low, 0)
        for row in state.model_mins.rows()
        for slot, low in state.model_mins.of(row).items()
        if slot not in own
    }


def eligible_victims(
    claimant: Claimant,
    node_class: str | None,
    owed: BoundOf,
    reason: Reason,
    gives_back: Callable[[str, Claimant], bool],
) -> Iterator[list[Eligible]]:
    """Ranks of pods on the cards of the class; `owed` is what a quota is owed of a resource.

    Only of quotas that give back at all.
    """
    state, charge = claimant.state, dict(claimant.claim.charge(node_class))
    for cards, model in state.nodes.classes.models_of(node_class):
        if charge.get(model) and _is_owed(claimant, charge, cards, model, owed):
            holders = _Holders(claimant, charge, cards, model, owed, reason)
            holders.keep(lambda quota: gives_back(quota, claimant))
            yield from holders.ranks()


def _is_owed(
    claimant: Claimant, charge: dict[int, int], cards: int, model: int, owed: BoundOf
) -> bool:
    """Would the claim's quota stay within its min of the model, and what it is owed of cards?"""
    state, mins, amount = claimant.state, claimant.state.model_mins.of(model), charge[model]
    naming = [slot for slot in state.tree.lineage(claimant.quota) if slot in mins]
    within = all(after_leaving(state, model, slot) + amount <= mins[slot] for slot in naming)
    return bool(naming) and within and _within(claimant, cards, amount, owed)


def _within(claimant: Claimant, row: int, amount: int, owed: BoundOf) -> bool:
    used = after_leaving(claimant.state, row, claimant.slot)
    return used + amount <= owed(row, claimant.slot)


class _Holders:
    """The quotas that hold cards of a model above their min of it."""

    def __init__(
        self,
        claimant: Claimant,
        charge: dict[int, int],
        cards: int,
        model: int,
        owed: BoundOf,
        reason: Reason,
    ) -> None:
        self._claimant = claimant
        self._state = state = claimant.state
        self._charge = charge
        self._cards = cards
        self._model = model
        self._owed = owed
        self._reason = reason
        self._mins = state.model_mins.of(model)
        self._own = state.tree.lineage(claimant.quota)
        running = state.bound_pods
        others = ~np.isin(running.quota, (claimant.slot, state.tree.slots[OUTSIDE]))
        self._pods: Mask = claimant.evictable & others & (running.charge.data[model] > 0)
        self.quotas: list[int] = np.unique(running.quota[self._pods]).tolist()
        self._supplies: dict[tuple[int, frozenset[int]], int] = {}

    def keep(self, gives_back: Callable[[str], bool]) -> None:
        """Leave out the quotas that do not give back."""
        names = self._state.tree.slots.names
        self.quotas = [slot for slot in self.quotas if gives_back(str(names[slot]))]
        self._pods &= np.isin(self._state.bound_pods.quota, self.quotas)

    def ranks(self) -> Iterator[list[Eligible]]:
        """Over-quota pods, any pods beyond what is owed, pods that can go elsewhere."""
        scarce = self._scarce()
        if not self.quotas or scarce is None:
            return
        over = np.zeros_like(self._pods)
        for slot in self.quotas:
            bound = (self._owed(self._cards, slot),)
            over[split_at(self._state, slot, (self._cards,), bound).over] = True
        limits = self._limits(scarce, self._in_cards(()))
        yield [self._eligible(self._pods & over, limits)]
        yield [self._eligible(self._pods, limits)]
        movable, quotas = self._movable()
        if movable.any():
            mask = movable | (self._pods & ~np.isin(self._state.bound_pods.quota, quotas))
            for down_to_floor in (False, True):
                limits = self._limits(scarce, self._in_cards(quotas), down_to_floor)
                yield [self._eligible(mask, limits)]

    def _scarce(self) -> list[int] | None:
        """The guaranteed resources besides cards of which too little is idle for the claim.

        None if its quota is not owed those: then it has no right to take them.
        """
        state = self._state
        named = [row for row in self._charge if state.tree.guaranteed(row) is not None]
        scarce = [
            row
            for row in named
            if row != self._cards and state.model_mins.idle(row) < self._charge[row]
        ]
        owed = all(
            _within(self._claimant, row, self._charge[row], self._owed)
            for row in scarce
            if state.tree.names(self._claimant.slot, row)
        )
        return scarce if owed else None

    def _accounts(self) -> list[int]:
        """The quotas that hold such cards, and those above them that are not above the claim's."""
        tree = self._state.tree
        names = tree.slots.names
        found = (each for slot in self.quotas for each in tree.lineage(str(names[slot])))
        return [slot for slot in dict.fromkeys(found) if slot not in self._own]

    def _in_cards(self, movable: list[int] | tuple[()]) -> Limits:
        """What may be taken of quotas in cards: what is beyond what they are owed.

        Without a limit where pods of theirs can go elsewhere.
        """
        tree = self._state.tree
        free = {each for slot in movable for each in tree.lineage(str(tree.slots.names[slot]))}
        return {
            (slot, self._cards): self._beyond(self._cards, slot)
            for slot in self._accounts()
            if slot not in free
        }

    def _limits(self, scarce: list[int], in_cards: Limits, down_to_floor: bool = False) -> Limits:
        limits = in_cards.copy()
        for slot in self._accounts():
            for row in scarce:
                limits[slot, row] = self._beyond(row, slot)
        limits |= kept_of_models(self._state, self._claimant.claim)
        for slot in self.quotas if down_to_floor else ():
            if slot in self._mins:
                split = split_at(self._state, slot, (self._model,), (self._mins[slot],))
                limits[slot, self._model] = split.total[self._model] - split.floor[self._model]
        return limits

    def _beyond(self, row: int, slot: int) -> int:
        return max(staying(self._state, row, slot) - self._owed(row, slot), 0)

    def _movable(self) -> tuple[Mask, list[int]]:
        """The pods that could go elsewhere, their quota having what it is owed; and their quotas.

        Pods of one shape may run on the same nodes: it is asked once for each shape and quota.
        """
        running = self._state.bound_pods
        movable: Mask = np.zeros_like(self._pods)
        found = []
        for slot in self.quotas:
            these = self._pods & (running.quota == slot)
            for number in np.unique(running.shape[these]).tolist():
                if self._can_go_elsewhere(slot, number):
                    movable |= these & (running.shape == number)
                    found.append(slot)
        return movable, list(dict.fromkeys(found))

    def _can_go_elsewhere(self, slot: int, number: int) -> bool:
        """Is there enough for the quota on the models that pods of a shape can run on?

        For all that it is owed, once the claim has what it asks for.
        """
        state, amount = self._state, self._charge[self._model]
        classes = state.placement.classes(
            state.placement.shape_ask(state.bound_pods.shapes[number])
        )
        of_class = state.nodes.classes.models_of
        models = frozenset(dict(of_class(each)).get(self._cards, OTHER) for each in classes)
        lacking = self._owed(self._cards, slot) - after_leaving(state, self._cards, slot)
        if (slot, models) not in self._supplies:
            self._supplies[slot, models] = self._supply(slot, models)
        return self._supplies[slot, models] >= amount + lacking

    def _supply(self, slot: int, models: frozenset[int]) -> int:
        """The cards of these models that are idle, or that other quotas have beyond their dues.

        Less what quotas lack whose pods are being evicted.
        """
        state, leaves = self._state, self._state.tree.leaf_slots
        others = leaves[~np.isin(leaves, (slot, self._claimant.slot))]
        held = self._staying(self._cards, others)
        owed = np.array([self._owed(self._cards, each) for each in others.tolist()], dtype=np.int64)
        of_models = np.zeros_like(held)
        for row in models:
            low = [state.model_mins.get(row, each) for each in others.tolist()]
            of_models += np.maximum(self._staying(row, others) - np.array(low, dtype=np.int64), 0)
        beyond = np.minimum(of_models, np.maximum(held - owed, 0))
        going = state.leaving.charge.data[self._cards][others]
        lack = np.minimum(np.maximum(owed - held, 0), going)
        return sum(map(self._idle, models)) + int(beyond.sum()) - int(lack.sum())

    def _staying(self, row: int, slots: _Amounts) -> _Amounts:
        """What quotas use of a model and do not give back already."""
        used, leaving = self._state.ledger.used.data, self._state.leaving.charge.data
        rows, named = self._parts(row)
        found: _Amounts = used[rows][slots] - leaving[rows][slots]
        for each in named:
            found = found - used[each][slots] + leaving[each][slots]
        return found

    def _idle(self, row: int) -> int:
        """The cards of a model that are idle, once the leaving pods are gone."""
        mins, leaving = self._state.model_mins, self._state.leaving.charge
        rows, named = self._parts(row)
        idle = mins.idle(rows) + mins.leaving(rows, leaving)
        return idle - sum(mins.idle(each) + mins.leaving(each, leaving) for each in named)

    def _parts(self, row: int) -> tuple[int, tuple[int, ...]]:
        """The row of a model; of other models, that of all cards, and those to be subtracted."""
        if row != OTHER:
            return row, ()
        return self._cards, self._state.nodes.classes.models.get(self._cards, ())

    def _eligible(self, mask: Mask, limits: Limits) -> Eligible:
        return Eligible(mask, self._reason, self._explain, limits=limits)

    def _explain(self, victim: Pod) -> str:
        """The message of a reclaim: min and use of the model of both quotas."""
        state, claimant = self._state, self._claimant
        name, slots = state.resources.names[self._model], state.tree.slots
        quota = str(state.tree.quota_of(victim))
        slot = slots[quota]
        own = next(each for each in self._own if each in self._mins)
        cards = state.resources.names[self._cards]
        used, owed = staying(state, self._cards, slot), self._owed(self._cards, slot)
        words = (
            f"quota {slots.names[own]} takes back its min for {claimant.claim.pods[0].path}: "
            f"min {text(name, self._mins[own])} {name}, "
            f"used {text(name, after_leaving(state, self._model, own))}, "
            f"{claimant.asks(name, self._charge[self._model])}; "
            f"quota {quota} uses {text(name, staying(state, self._model, slot))}, "
            f"min {text(name, self._mins.get(slot, 0))}"
        )
        if used > owed:
            return f"{words}, and {text(cards, used)} {cards} of {text(cards, owed)} it is owed"
        return f"{words}; for what it is owed there are {cards} of other models"
