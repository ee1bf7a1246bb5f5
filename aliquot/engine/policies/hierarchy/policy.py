"""Koordinator quota trees: each quota may use its runtime, an exact share of the cluster."""

from aliquot.engine.policies.hierarchy.gates import HierarchyGates
from aliquot.engine.policies.hierarchy.reclaim import HierarchyReclaim
from aliquot.engine.policies.hierarchy.report import HierarchyReport
from aliquot.engine.policies.hierarchy.shares import Shares
from aliquot.engine.policies.hierarchy.turns import HierarchyTurns
from aliquot.engine.policies.interface import Policy
from aliquot.engine.policies.shares import CurrentShares
from aliquot.engine.state import State


def hierarchy(state: State) -> Policy:
    """The policy of quota trees."""
    knobs = state.knobs.hierarchy
    shares = CurrentShares(state, Shares(state, knobs))
    gates = HierarchyGates(state, shares, knobs)
    return Policy(
        gates,
        HierarchyReclaim(state, shares, gates, knobs),
        HierarchyReport(state, shares),
        HierarchyTurns(state, shares),
    )
