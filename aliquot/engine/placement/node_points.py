"""Node points: how much a pod prefers each of the nodes that could hold it, in one integer.

Each preference is normalised over these nodes to 0 to 100, as kube-scheduler's plugins do, and
counts by its weight. Most pods prefer no node to another and have no points.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.model.knobs import PlacementWeights
from aliquot.engine.model.node import NodeConstraints
from aliquot.engine.placement.preferences import NodeFit
from aliquot.engine.placement.rule_sets import RuleSet, RuleSets

_BEST = 100
_Column = NDArray[np.int64]


class PointsBySource(NamedTuple):
    """The normalised points of each node, by what gives them; None where nothing does."""

    node_affinity: _Column | None = None
    taints: _Column | None = None
    pod_affinity: _Column | None = None
    topology_spread: _Column | None = None
    images: _Column | None = None


def points_by_source(
    rule_sets: RuleSets,
    rule_set: RuleSet | None,
    where: NodeConstraints,
    fit: NodeFit,
    feasible: NDArray[np.bool_],
    images: _Column | None,
) -> PointsBySource:
    """The points of the feasible nodes; `images` are those for the images that nodes have."""
    affinity = taints = near = spread = None
    if fit.preferred.any():
        affinity = _part_of_best(fit.preferred, feasible)
    if fit.soft_taints.any():
        taints = _BEST - _part_of_best(fit.soft_taints, feasible)
    if rule_set is not None:
        near = _between(rule_sets.affinity_points(rule_set, len(feasible)), feasible)
        spread = rule_sets.spread_points(rule_set, where, feasible)
    return PointsBySource(affinity, taints, near, spread, images)


def total(points: PointsBySource, weights: PlacementWeights, count: int) -> _Column:
    """All points of each node, weighted."""
    found = np.zeros(count, dtype=np.int64)
    for column, weight in (
        (points.node_affinity, weights.node_affinity),
        (points.taints, weights.taints),
        (points.pod_affinity, weights.pod_affinity),
        (points.topology_spread, weights.topology_spread),
        (points.images, weights.image_locality),
    ):
        if column is not None:
            found += weight * column
    return found


def _part_of_best(raw: _Column, feasible: NDArray[np.bool_]) -> _Column:
    """0 to 100, in proportion to the largest."""
    most = int(raw[feasible].max(initial=0))
    return raw * _BEST // most if most else np.zeros(len(raw), dtype=np.int64)


def _between(raw: _Column, feasible: NDArray[np.bool_]) -> _Column | None:
    """0 for the smallest to 100 for the largest; None where all are equal.

    In floats, as kube-scheduler does it, so that what it cuts off is the same.
    """
    here = raw[feasible]
    least, most = int(here.min(initial=0)), int(here.max(initial=0))
    if len(here):
        least, most = int(here.min()), int(here.max())
    if least == most:
        return None
    found: _Column = (_BEST * ((raw - least) / (most - least))).astype(np.int64)
    return found
