"""What counts as used in a quota, and the ratio of a use to a share: one rule for all policies."""

from aliquot.engine.model.quantity import LIMIT
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

_SCALE = 2**256
"""The fixed-point scale of ratios, which are cheaper to compare than fractions. A denominator is at
most an amount times a weight, both below 2**64, so different ratios differ by more than 2**-256 and
never count as equal."""
INFINITE = LIMIT * _SCALE
"""The ratio of a use to a share of nothing."""


def taken(state: State, row: int, slot: int) -> int:
    """What is used or nominated in an account now."""
    ledger = state.ledger
    used = ledger.used.get(row, slot)
    return used + ledger.held.get(row, slot) if ledger.holding else used


def after_leaving(state: State, row: int, slot: int) -> int:
    """What is used or nominated in an account once the leaving pods are gone."""
    return taken(state, row, slot) - state.leaving.charge.get(row, slot)


def staying(state: State, row: int, slot: int) -> int:
    """What is used in an account by pods that are not leaving."""
    return state.ledger.used.get(row, slot) - state.leaving.charge.get(row, slot)


def ratio(part: int, whole: int) -> int:
    """A part of a whole as a number that can be compared with other ratios."""
    return part * _SCALE // whole if whole else INFINITE


def within_max(state: State, claim: Claim, node_class: str | None) -> bool:
    """Is what the claim asks for, by itself, within the max of its quota and every ancestor?"""
    return claim.quota is None or all(
        amount <= state.tree.max.get(row, slot)
        for slot in state.tree.lineage(claim.quota)
        for row, amount in claim.charge(node_class)
    )


def within_min(state: State, quota: str, row: int, amount: int) -> bool:
    """Would a quota that takes this much more still be within its min?"""
    slot = state.tree.slots[quota]
    return after_leaving(state, row, slot) + amount <= state.tree.min.get(row, slot)
