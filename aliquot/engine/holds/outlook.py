"""The outlook of nodes: when they will have room for a pod, by the known ends of the pods there.

Only pods that can end count: those that terminate, have a known end, are bare or of a Job. What a
Deployment, StatefulSet or DaemonSet keeps running is never waited for. Worked out for all nodes at
once, in a few numpy calls over the bound pods.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.bound_pods import NEVER, UNKNOWN, end_of
from aliquot.engine.gang_domains import first_nodes
from aliquot.engine.placement.ask import Ask
from aliquot.engine.placement.domains import Domains, Mask
from aliquot.engine.state import State

Column = NDArray[np.int64]
_IDLE_SCALE = 1_000
"""Idle amounts are compared in thousandths of what is asked for: fine enough to tell nodes apart,
and small enough to add up over all resources."""


class Outlook:
    """When each node has room, as pods of a claim are put on nodes one after another."""

    def __init__(self, state: State, classes: list[str]) -> None:
        """Of nodes of these classes."""
        self._state = state
        self._allowed = state.nodes.of_classes(classes)
        self._confined_to: Mask | None = None
        bound = state.bound_pods
        slots = np.flatnonzero((bound.node >= 0) & (bound.ends <= UNKNOWN))
        self._slots = slots[np.lexsort((bound.ends[slots], bound.node[slots]))]
        self._node = bound.node[self._slots]
        self._ends = bound.ends[self._slots]
        self._planned: dict[tuple[int, int], int] = {}
        """What earlier pods of the claim take, by row and node."""
        self._leaving = self._last_departures()

    def begin(self, nodes: Mask | None) -> None:
        """Put the pods of a claim on nodes from now on: on these only, if given."""
        self._confined_to = nodes
        self._planned.clear()

    def soonest(self, asks: Sequence[Ask], domains: Domains, allowed: Column) -> list[int]:
        """Of these domains those that will have room for the pods, the one with it first at first.

        As an estimate: as if all pods were like the first, and no node held some of them before
        the last of its pods has ended that one of them waits for.
        """
        times, idle = self._times(asks[0])
        count, never = len(times), times >= NEVER
        holds = np.full(count, len(asks), dtype=np.int64)
        for row, amount in asks[0].room:
            room = self._state.bound_pods.room.data[row][self._slots]
            free = self._free(row, count) + np.bincount(self._node, room, count)
            np.minimum(holds, (free // amount).astype(np.int64), out=holds)
        holds[never | (holds < 0)] = 0
        of_slot = domains.of_slot
        order = np.lexsort((times, of_slot))
        before = np.cumsum(holds[order])
        first = np.searchsorted(of_slot[order], of_slot[order])
        before -= np.where(first > 0, before[first - 1], 0)
        enough = before >= len(asks)
        start = np.full(domains.size, NEVER)
        np.minimum.at(start, of_slot[order][enough], times[order][enough])
        much = np.bincount(of_slot, idle, domains.size)
        found = allowed[start[allowed] < NEVER]
        names = first_nodes(self._state, domains)[found]
        numbers: list[int] = found[np.lexsort((names, much[found], start[found]))].tolist()
        return numbers

    def choose(self, ask: Ask) -> str | None:
        """The node that has room for such a pod first; None if none ever has.

        Unknown ends come after all known ones; of equals, the node on which least is idle.
        """
        times, idle = self._times(ask)
        found = np.flatnonzero(times < NEVER)
        if not len(found):
            return None
        order = np.lexsort((self._state.nodes.rank[found], idle[found], times[found]))
        best = int(found[order[0]])
        for row, amount in ask.room:
            self._planned[row, best] = self._planned.get((row, best), 0) + amount
        return self._state.nodes.slots.names[best]

    def _times(self, ask: Ask) -> tuple[Column, Column]:
        """When each node has room for such a pod; and how much of what it asks for is idle."""
        placement, count = self._state.placement, len(self._state.nodes.slots)
        open_to = placement.nodes_by_rules(ask)[:count] & placement.device_nodes(ask)[:count]
        open_to &= self._allowed[:count]
        if self._confined_to is not None:
            open_to &= self._confined_to
        times = np.where(open_to, self._leaving, NEVER)
        idle = np.zeros(count, dtype=np.int64)
        for row, amount in ask.room:
            free = self._free(row, count)
            np.maximum(times, self._end_of_shortage(row, amount - free), out=times)
            idle += np.clip(free, 0, amount) * _IDLE_SCALE // max(amount, 1)
        return times, idle

    def _free(self, row: int, count: int) -> Column:
        free = self._state.placement.free_soon(row, self._state.leaving.room)[:count].copy()
        for (planned_row, node), amount in self._planned.items():
            if planned_row == row:
                free[node] -= amount
        return free

    def _end_of_shortage(self, row: int, short: Column) -> Column:
        """When pods that have ended will have freed so much on each node; 0 where none must."""
        ends = np.where(short > 0, NEVER, 0)
        if not len(self._slots):
            return ends
        freed = np.cumsum(self._state.bound_pods.room.data[row][self._slots])
        first = np.searchsorted(self._node, self._node)  # of each pod's node
        before = freed[first] - self._state.bound_pods.room.data[row][self._slots[first]]
        enough = np.flatnonzero(freed - before >= short[self._node])
        soonest = np.full(len(short), NEVER)
        np.minimum.at(soonest, self._node[enough], self._ends[enough])
        return np.where(short > 0, soonest, ends)

    def _last_departures(self) -> Column:
        """When the last leaving pod of each node is gone, as far as that is known."""
        state = self._state
        last = np.zeros(len(state.nodes.slots), dtype=np.int64)
        for uid in state.leaving:
            node, gone_by = state.ledger.entries[uid].node, state.pods[uid].gone_by
            last[node] = max(last[node], UNKNOWN if gone_by is None else gone_by)
        return last


def known_start(state: State, room: dict[str, dict[int, int]]) -> int | None:
    """When the nodes have so much room, by the known ends of the pods there; None if unknown.

    `room` is by node and row. What is held on these nodes for waiting pods is not counted.
    """
    start = 0
    for node, amounts in room.items():
        slot = state.nodes.slots[node]
        here = [uid for uid in state.ledger.by_node.get(slot, ()) if state.pods[uid].node]
        left = {
            row: state.nodes.allocatable.get(row, slot)
            - amount
            - sum(dict(state.ledger.entries[uid].booking.room).get(row, 0) for uid in here)
            for row, amount in amounts.items()
        }
        ends = sorted((end_of(state.pods[uid]), uid) for uid in here)
        for end, uid in ends:
            if all(amount >= 0 for amount in left.values()):
                break
            start = max(start, end)
            for row, amount in state.ledger.entries[uid].booking.room:
                if row in left:
                    left[row] += amount
    return start if start < UNKNOWN else None
