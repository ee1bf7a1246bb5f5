"""Forced recycling: a quota that uses more than its runtime gives back, the lowest priority first.

Pods go until the quota is within its runtime in every resource; then, from the most important one
down, whoever still fits is spared.
"""

from collections.abc import Collection

from aliquot.engine.decisions import Evict
from aliquot.engine.offer import evictable
from aliquot.engine.policies.shares import Shares
from aliquot.engine.quantity import text
from aliquot.engine.reasons import Reason
from aliquot.engine.state import State

Amounts = dict[int, int]


def overused(state: State, shares: Shares, surplus: Collection[str]) -> list[int]:
    """The quotas (by slot) that use more than their runtime, apart from what is surplus."""
    lent = _lent(state, surplus)
    return [
        slot
        for slot in state.running.quotas()
        if slot in shares.sharing and _over(shares, slot, lent.get(slot, {}))
    ]


def evictions(
    state: State, shares: Shares, slot: int, surplus: Collection[str], now: int
) -> list[Evict]:
    """Who goes so that the quota is within its runtime; budgets are kept where they can be."""
    may_go = evictable(state, now) & state.running.preemptible
    over = _over(shares, slot, _lent(state, surplus).get(slot, {}))
    ranked = [
        uid
        for uid in reversed(state.running.ranked(slot))
        if may_go[state.running.slots[uid]] and uid not in surplus
    ]
    guarded = [uid for uid in ranked if _guarded(state, uid)]
    gone: dict[str, Amounts] = {}
    for uid in [*(uid for uid in ranked if uid not in guarded), *guarded]:
        charge = dict(state.ledger.entries[uid].booking.charge)
        if any(amount > 0 and charge.get(row, 0) for row, amount in over.items()):
            gone[uid] = charge
            over = {row: amount - charge.get(row, 0) for row, amount in over.items()}
    if all(amount <= 0 for amount in over.values()):
        for uid in sorted(gone, key=state.running.key):
            back = {row: amount + gone[uid].get(row, 0) for row, amount in over.items()}
            if all(amount <= 0 for amount in back.values()):
                over = back
                del gone[uid]
    words = _words(state, shares, slot)
    return [Evict(state.pods[uid], None, Reason.RECYCLED, words) for uid in gone]


def _lent(state: State, surplus: Collection[str]) -> dict[int, Amounts]:
    """What each quota (by slot) was lent as surplus."""
    lent: dict[int, Amounts] = {}
    for uid in surplus:
        entry = state.ledger.entries[uid]
        sums = lent.setdefault(entry.path[0], {})
        for row, amount in entry.booking.charge:
            sums[row] = sums.get(row, 0) + amount
    return lent


def _over(shares: Shares, slot: int, lent: Amounts) -> Amounts:
    """What a quota uses beyond its runtime, surplus aside, where it does."""
    account = shares.account(slot)
    beyond = {
        row: shares.soon(row, account) - lent.get(row, 0) - shares.runtime.get(row, account)
        for row in sorted(shares.rows)
    }
    return {row: amount for row, amount in beyond.items() if amount > 0}


def _guarded(state: State, uid: str) -> bool:
    return any(state.budgets.left(path) == 0 for path in state.budgets.on(state.pods[uid]))


def _words(state: State, shares: Shares, slot: int) -> str:
    """In what the quota is above its runtime."""
    account = shares.account(slot)
    parts = []
    for row in sorted(shares.rows):
        name, used = state.resources.names[row], shares.soon(row, account)
        share = shares.runtime.get(row, account)
        if used > share:
            parts.append(f"uses {text(name, used)} {name}, runtime {text(name, share)}")
    return f"quota {state.tree.slots.names[slot]} {'; '.join(parts)}"
