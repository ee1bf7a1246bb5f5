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


def roomy(state: State, pod: Pod) -> set[str]:
    """The nodes with enough free for the pod, whether or not it may run there."""
    ask = state.placement.ask(pod)
    enough = state.placement.has_free(ask)
    names = state.nodes.slots.names
    return {str(names[slot]) for slot in np.flatnonzero(enough).tolist() if names[slot]}


def most_free(state: State, pod: Pod) -> dict[str, int]:
    """The most that one node has free of each resource that the pod asks for.

    Of the nodes where nothing else refuses it.
    """
    ask = state.placement.ask(pod)
    open_to, free = state.placement.nodes_by_rules(ask), state.placement.free_soon
    exact, found = dict(pod.shape.requests), dict[str, int]()
    for row, _ in ask.room if open_to.any() else ():
        name = state.resources.names[row]
        here = free(row, state.leaving.room)[: len(open_to)][open_to]
        if name in exact:
            found[name] = max(int(here.max()), 0)
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
