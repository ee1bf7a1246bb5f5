"""What quotas use above their max: the first victims of any owed claim, under every policy.

No decision raises a quota above its max, so what is above it came past the scheduler: pods created
with a node, pods of another scheduler, pods that were resized; or max was lowered. Nothing is
evicted for that alone. But a claim that is owed takes this back first, and at once.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from aliquot.engine.books.quota_tree import OUTSIDE
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.quantity import text
from aliquot.engine.model.reasons import Reason
from aliquot.engine.policies.eligible import Eligible, Limits, Mask
from aliquot.engine.policies.over_quota import Rows
from aliquot.engine.policies.shields import BoundOf
from aliquot.engine.policies.usage import staying
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

Excess = dict[int, dict[int, int]]
"""By how much accounts are above their max, by slot and row."""


def excess(state: State, rows: Rows) -> Excess:
    """The quotas above their max in any of these resources, leaving pods aside."""
    found: Excess = {}
    for row in rows:
        used = state.ledger.used.data[row] - state.leaving.charge.data[row]
        for slot in np.flatnonzero(used > state.tree.max.data[row]).tolist():
            found.setdefault(slot, {})[row] = int(used[slot]) - state.tree.max.get(row, slot)
    return found


def eligible_victims(
    state: State,
    claim: Claim,
    nodes_by_rows: Mapping[Rows, Mask],
    evictable_in: Callable[[Rows], Mask],
    bound: BoundOf,
    reason: Reason,
) -> Iterator[list[Eligible]]:
    """Pods of quotas above their max in what is short: down to max, and never below the bound."""
    own = set(state.tree.lineage(str(claim.quota)))
    groups = []
    for rows, nodes in nodes_by_rows.items():
        over = {slot: by_row for slot, by_row in excess(state, rows).items() if slot not in own}
        if over:
            evictable = evictable_in(rows)
            groups.append(_eligible(state, claim, rows, nodes, evictable, over, bound, reason))
    if groups:
        yield groups


def _eligible(
    state: State,
    claim: Claim,
    rows: Rows,
    nodes: Mask,
    evictable: Mask,
    over: Excess,
    bound: BoundOf,
    reason: Reason,
) -> Eligible:
    """The pods charged to these accounts."""
    names, outside = state.tree.slots.names, state.tree.slots[OUTSIDE]
    above: dict[int, int] = {}
    for slot in state.bound_pods.quotas():
        lineage = () if slot == outside else state.tree.lineage(str(names[slot]))
        account = next((each for each in lineage if each in over), None)
        if account is not None:
            above[slot] = account
    limits: Limits = {
        (slot, row): max(staying(state, row, slot) - bound(row, slot), 0)
        for slot in above
        for row in rows
    }
    for account, by_row in over.items():
        for row, amount in by_row.items():
            limits[account, row] = min(limits.get((account, row), amount), amount)

    def explain(victim: Pod) -> str:
        quota = str(state.tree.quota_of(victim))
        account = above[state.tree.slots[quota]]
        row = min(over[account], key=lambda row: state.resources.names[row])
        name, most = state.resources.names[row], state.tree.max.get(row, account)
        return (
            f"quota {names[account]} uses {text(name, most + over[account][row])} {name}, "
            f"max {text(name, most)}: what is above max goes first; "
            f"{claim.pods[0].path} is owed what it asks for in quota {claim.quota}"
        )

    mask: Mask = evictable & np.isin(state.bound_pods.quota, list(above))
    return Eligible(mask, reason, explain, nodes, limits)
