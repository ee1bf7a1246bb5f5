"""Forced recycling: a quota that uses more than its runtime gives back, the lowest priority first.

Pods go until the quota is within its runtime in every resource; then, from the most important one
down, whoever still fits is spared.
"""

from collections.abc import Collection

from aliquot.engine.decisions import Evict
from aliquot.engine.offer import evictable
from aliquot.engine.policies.borrowing import soon
from aliquot.engine.policies.shares import Shares
from aliquot.engine.quantity import text
from aliquot.engine.reasons import Reason
from aliquot.engine.state import State

Amounts = dict[int, int]


def overused(state: State, shares: Shares, surplus: Collection[str]) -> list[int]:
    """The quotas (by slot) that use more than their runtime, apart from what is surplus."""
    lent: dict[int, Amounts] = {}
    for uid in surplus:
        entry = state.ledger.entries[uid]
        sums = lent.setdefault(entry.path[0], {})
        for row, amount in entry.booking.charge:
            sums[row] = sums.get(row, 0) + amount
    return [
        slot
        for slot in state.running.quotas()
        if any(
            soon(state, row, slot) - lent.get(slot, {}).get(row, 0) > shares.runtime.get(row, slot)
            for row in shares.counted.get(slot, ())
        )
    ]


def evictions(
    state: State, slot: int, bounds: Amounts, surplus: Collection[str], now: int
) -> list[Evict]:
    """Who goes so that the quota is within these bounds; budgets are kept where they can be."""
    may_go = evictable(state, now) & state.running.preemptible
    used = {row: soon(state, row, slot) for row in bounds}
    ranked = [
        uid
        for uid in reversed(state.running.ranked(slot))
        if may_go[state.running.slots[uid]] and uid not in surplus
    ]
    guarded = [uid for uid in ranked if _guarded(state, uid)]
    gone: dict[str, Amounts] = {}
    for uid in [*(uid for uid in ranked if uid not in guarded), *guarded]:
        charge = dict(state.ledger.entries[uid].booking.charge)
        if any(used[row] > bounds[row] and charge.get(row, 0) for row in bounds):
            gone[uid] = charge
            used = {row: had - charge.get(row, 0) for row, had in used.items()}
    within = all(used[row] <= bounds[row] for row in bounds)
    for uid in sorted(gone, key=state.running.key) if within else ():
        back = {row: had + gone[uid].get(row, 0) for row, had in used.items()}
        if all(back[row] <= bounds[row] for row in bounds):
            used = back
            del gone[uid]
    words = _words(state, slot, bounds)
    return [Evict(state.pods[uid], None, Reason.RECYCLED, words) for uid in gone]


def _guarded(state: State, uid: str) -> bool:
    return any(state.budgets.left(path) == 0 for path in state.budgets.on(state.pods[uid]))


def _words(state: State, slot: int, bounds: Amounts) -> str:
    """In what the quota is above its runtime."""
    above = [row for row in sorted(bounds) if soon(state, row, slot) > bounds[row]]
    parts = (
        f"uses {text(name, soon(state, row, slot))} {name}, runtime {text(name, bounds[row])}"
        for row in above
        for name in (state.resources.names[row],)
    )
    return f"quota {state.tree.slots.names[slot]} {'; '.join(parts)}"
