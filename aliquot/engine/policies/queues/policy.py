"""Volcano queues: each queue may use what it deserves, and its namespaces share that by weight."""

from aliquot.engine.policies.interface import Policy
from aliquot.engine.policies.queues.deserved import Deserved
from aliquot.engine.policies.queues.drf import DominantShares
from aliquot.engine.policies.queues.gates import QueueGates
from aliquot.engine.policies.queues.reclaim import QueueReclaim
from aliquot.engine.policies.queues.report import QueueReport
from aliquot.engine.policies.queues.return_order import ReturnOrder
from aliquot.engine.policies.queues.turns import QueueTurns
from aliquot.engine.policies.shares import CurrentShares
from aliquot.engine.state import State


def queues(state: State) -> Policy:
    """The policy of queues."""
    shares, drf = CurrentShares(state, Deserved(state)), DominantShares(state)
    state.model_mins.deserved_counts = True
    gates = QueueGates(state, shares)
    bands = state.knobs.queues.priority_bands
    turns = QueueTurns(state, shares, drf, bands)
    order = ReturnOrder(state, shares.book, drf, turns.last_turn, bands)
    return Policy(
        gates,
        QueueReclaim(state, shares, drf, gates, order, bands),
        QueueReport(state, shares, drf),
        turns,
    )
