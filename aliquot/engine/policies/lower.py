"""A quota's bound was lowered below what it uses: who goes, if the knob says that somebody must."""

from collections.abc import Iterator

from aliquot.engine.decisions import Evict
from aliquot.engine.offer import evictable
from aliquot.engine.quantity import LIMIT, text
from aliquot.engine.reasons import Reason
from aliquot.engine.state import State


def evictions(state: State, quota: str, now: int) -> Iterator[Evict]:
    """The least important pods of the quota, until it is within its max."""
    may_go = evictable(state, now)
    slot = state.tree.slots[quota]
    for uid in reversed(list(state.running.ranked(slot))):
        over = _over(state, slot)
        charge = state.ledger.entries[uid].booking.charge
        helps = [row for row, amount in charge if amount and row in over]
        if may_go[state.running.slots[uid]] and helps:
            row = helps[0]
            name = state.resources.names[row]
            used, most = over[row]
            message = f"quota {quota}: max {text(name, most)} {name}, used {text(name, used)}"
            pod = state.pods[uid]
            state.budgets.spend(pod)
            state.let_go(uid)
            yield Evict(pod, None, Reason.QUOTA_LOWERED, message)


def _over(state: State, slot: int) -> dict[int, tuple[int, int]]:
    """The resources in which the quota uses more than its max: used and max."""
    found = {}
    for row in range(len(state.resources)):
        used = state.ledger.used.get(row, slot) - state.leaving_charge.get(row, slot)
        most = state.tree.max.get(row, slot)
        if used > most and most < LIMIT:
            found[row] = (used, most)
    return found
