"""A quota's bounds were lowered below what it uses: who goes, if the knob says that any must."""

from aliquot.engine.cover import Item, Problem, choose
from aliquot.engine.decisions import Evict
from aliquot.engine.offer import Right, Rights, evictable
from aliquot.engine.policies.borrowing import soon
from aliquot.engine.policies.walk import walk
from aliquot.engine.quantity import text
from aliquot.engine.reasons import Reason
from aliquot.engine.state import State
from aliquot.engine.tree import ROOT


def evictions(state: State, quota: str, excess: Rights, now: int) -> list[Evict]:
    """The least important pods of the quota whose end brings it within its bounds.

    Over-quota ones first. Where others are spared for now, those who can go do.
    """
    may_go, slot = evictable(state, now), state.tree.slots[quota]
    ranked = [uid for uid in state.running.ranked(slot) if may_go[state.running.slots[uid]]]
    over = set(walk(state, slot, tuple(sorted({right.row for right in excess}))).over.tolist())
    items = [_item(state, uid, excess) for uid in ranked]
    first = [item for item in items if state.running.slots[item.uid] in over]
    needs = _needs(items, excess)
    chosen = _choose(state, first if _needs(first, excess) == needs else items, needs)
    words = {item.uid: _words(state, quota, item, excess) for item in chosen}
    return [Evict(state.pods[uid], None, Reason.QUOTA_LOWERED, words[uid]) for uid in words]


def _needs(items: list[Item], excess: Rights) -> dict[object, int]:
    """What is to be given back, as far as these can give it."""
    can = {right: sum(item.helps.get(right, 0) for item in items) for right in excess}
    return {right: min(n, can[right]) for right, n in excess.items() if min(n, can[right]) > 0}


def _choose(state: State, items: list[Item], needs: dict[object, int]) -> list[Item]:
    budgets = {path: state.budgets.left(path) for item in items for path in item.budgets}
    return (choose(items, Problem(needs, {}, budgets)) or []) if needs else []


def _item(state: State, uid: str, excess: Rights) -> Item:
    pod, charge = state.pods[uid], dict(state.ledger.entries[uid].booking.charge)
    helps: dict[object, int] = {right: charge.get(right.row, 0) for right in excess}
    name = state.running.name(uid)
    return Item(uid, pod.priority, pod.created, name, helps, {}, state.budgets.on(pod))


def _words(state: State, quota: str, item: Item, excess: Rights) -> str:
    """Which bound, and the numbers."""
    right = next(right for right in excess if item.helps.get(right))
    name, used = state.resources.names[right.row], soon(state, right.row, right.slot)
    most = text(name, used - excess[right])
    return (
        f"all quotas together: sum of min {most} {name}, used {text(name, used)}"
        if right.slot == state.tree.slots[ROOT]
        else f"quota {quota}: max {most} {name}, used {text(name, used)}"
    )


def above_max(state: State, quota: str) -> Rights:
    """What the quota uses beyond its max."""
    slot = state.tree.slots[quota]
    found: Rights = {}
    for row in range(len(state.resources)):
        over = soon(state, row, slot) - state.tree.max.get(row, slot)
        if over > 0:
            found[Right(slot, row)] = over
    return found
