"""Nodes as a waiting pod sees them: which refuse it and why, and which it prefers.

In the words of kube-scheduler's plugins, which people know and can look up.
"""

import numpy as np

from aliquot.engine.model.pod import Pod
from aliquot.engine.placement.constraints import PLUGINS, NodeRefusal
from aliquot.engine.placement.preferences import OPEN
from aliquot.engine.state import State

_SOURCES = (
    *("NodeAffinity", "TaintToleration", "InterPodAffinity", "PodTopologySpread"),
    "ImageLocality",
)
"""The plugins behind the parts of `PointsBySource`, in their order."""


def refusals(state: State, pod: Pod) -> dict[str, str]:
    """By node, the first plugin that refuses the pod."""
    column = state.placement.judged(state.placement.ask(pod))
    found = {}
    for slot in np.flatnonzero(column != OPEN).tolist():
        code, name = NodeRefusal(int(column[slot])), state.nodes.slots.names[slot]
        if name is not None and code is not NodeRefusal.GONE:
            found[name] = PLUGINS[code]
    return found


def preferences(state: State, pod: Pod) -> dict[str, dict[str, int]]:
    """By node that could hold the pod, its points by plugin."""
    ask = state.placement.ask(pod)
    feasible = state.placement.judged(ask) == OPEN
    points = state.placement.points(ask, feasible, pod.images)
    found: dict[str, dict[str, int]] = {}
    for slot in np.flatnonzero(feasible).tolist():
        by_source = zip(_SOURCES, points, strict=True)
        name = str(state.nodes.slots.names[slot])
        found[name] = {source: int(each[slot]) for source, each in by_source if each is not None}
    return found
