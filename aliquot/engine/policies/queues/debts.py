"""Debts: what a claim is owed, but other queues use above what they deserve and do not give back.

Their `reclaimable` may be false, or none of their pods may be evicted. Then the claim waits for
them, and says so in the words of queues: `NoNodeFits` is the word on which autoscalers buy nodes.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from aliquot.engine.books.quota_tree import OUTSIDE
from aliquot.engine.model.quantity import text
from aliquot.engine.model.reasons import Reason, Refusal, ask_text
from aliquot.engine.policies.queues.deserved import Deserved
from aliquot.engine.policies.reclaim_rules import by_shortage
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State


def debt_refusal(state: State, deserved: Deserved, claim: Claim, refusal: Refusal) -> Refusal:
    """The refusal of an owed claim that found no room; as it is if no queue owes it that."""
    charge = dict(pair for pair in claim.charge(None) if pair[0] in deserved.rows)
    queue, names = str(claim.quota), state.tree.slots.names
    for row, debtor in _debts(state, deserved, claim, charge):
        name, slot = state.resources.names[row], state.tree.slots[queue]
        message = (
            f"queue {queue}: deserves {text(name, deserved.get(row, slot))} {name}, "
            f"used {text(name, deserved.after_leaving(row, slot))}, "
            f"{ask_text(claim.size, name, charge[row])}; "
            f"queue {names[debtor]} uses {text(name, deserved.after_leaving(row, debtor))}, "
            f"deserves {text(name, deserved.get(row, debtor))}, "
            f"and gives nothing back: {_cause(state, debtor)}; {refusal.message}"
        )
        reason = Reason.QUEUE_OVER_DESERVED
        return replace(refusal, reason=reason, message=message, quota=queue, resource=name)
    return refusal


def _debts(
    state: State, deserved: Deserved, claim: Claim, charge: dict[int, int]
) -> Iterator[tuple[int, int]]:
    """The short resources, and the queues above deserved that use them where the claim could run.

    So are the queues above them, up to those above the claim's queue: a queue that is above
    deserved by what its own siblings lend owes the claim nothing. By the names of both.
    """
    resources, names, pods = state.resources.names, state.tree.slots.names, state.bound_pods
    lineage = state.tree.lineage(str(claim.quota))
    others = set(pods.quotas()) - {*lineage, state.tree.slots[OUTSIDE]}
    accounts = {slot: set(state.tree.lineage(str(names[slot]))) - {*lineage} for slot in others}
    open_nodes = state.placement.open_nodes(claim.asks[0])
    shortages = by_shortage(state, claim, tuple(charge.items()), set())
    short = {row for rows, nodes in shortages.items() if (nodes & open_nodes).any() for row in rows}
    on_open_nodes = np.isin(pods.node, np.flatnonzero(open_nodes))
    for row in sorted(short, key=lambda row: resources[row]):
        holds = on_open_nodes & (pods.charge.data[row] > 0)
        for slot in sorted(others, key=lambda slot: str(names[slot])):
            above = all(
                deserved.after_leaving(row, each) > deserved.get(row, each)
                for each in accounts[slot]
            )
            if above and (holds & (pods.quota == slot)).any():
                yield row, slot


def _cause(state: State, slot: int) -> str:
    """Why a queue gives nothing back."""
    name = str(state.tree.slots.names[slot])
    for quota in state.tree.ancestry(name):
        if not quota.reclaimable:
            return f"`reclaimable` of queue {quota.name} is false"
    return "none of its pods may be evicted for it"
