"""Why no node has room for a pod: how many nodes fail each filter, with the numbers of now."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.ledger import Ledger
from aliquot.engine.columns import exact_sum
from aliquot.engine.model.gpu import GpuAsk
from aliquot.engine.model.pod_rules import NO_RULES
from aliquot.engine.model.quantity import text
from aliquot.engine.model.reasons import ROOM, RULES, Reason, Refusal, Watch
from aliquot.engine.placement.ask import Ask
from aliquot.engine.placement.constraints import NodeRefusal
from aliquot.engine.placement.node_books import NodeBooks
from aliquot.engine.placement.preferences import OPEN
from aliquot.engine.placement.refusal_words import refusal_words
from aliquot.engine.placement.volumes.filter import VolumeFilter


class RoomRefusals:
    """What pods are told that no node holds."""

    def __init__(
        self,
        books: NodeBooks,
        ledger: Ledger,
        volumes: VolumeFilter,
        judged: Callable[[Ask], NDArray[np.int64]],
        open_nodes: Callable[[Ask], NDArray[np.bool_]],
    ) -> None:
        """`judged` says of each node why it is refused, `open_nodes` where such a pod may run."""
        self._books = books
        self._ledger = ledger
        self._volumes = volumes
        self._judged = judged
        self._open_nodes = open_nodes

    def of(self, ask: Ask) -> Refusal:
        """Why no node has room for such a pod: how many nodes each filter refuses, with numbers.

        A node is counted where the first filter refuses it, in kube-scheduler's order; one with too
        little of several resources, for each of them. Where neither rules nor devices count, pods
        of one shape are told the same until a node has changed, or what is free on one.
        """
        self._books.capacity.refresh()
        if ask.rule_set is not None or ask.gpu is not None:
            return self._refusal(ask)
        moment = *self._books.capacity.moment, self._books.nodes.version, bool(self._ledger.holding)
        if ask.told is None or ask.told[0] != moment:
            ask.told = moment, self._refusal(ask)
        return ask.told[1]

    def _refusal(self, ask: Ask) -> Refusal:
        column = self._judged(ask)
        exact = dict(ask.shape.requests)
        short_of = column == NodeRefusal.RESOURCES
        causes: list[tuple[int, str, str | None]] = []
        for row, amount in ask.room:
            here = self._books.capacity.free.data[row, : len(column)][short_of]
            lacking = here[here < amount]
            if len(lacking):
                name = self._books.resources.names[row]
                most = text(name, max(int(lacking.max()), 0))
                words = f"too little {name} (asks {text(name, exact[name])}, most free {most})"
                causes.append((len(lacking), words, name))
        rules = NO_RULES if ask.rule_set is None else ask.rule_set.rules
        for code, number in zip(*np.unique(column[column < OPEN], return_counts=True), strict=True):
            if code not in (NodeRefusal.GONE, NodeRefusal.RESOURCES):
                causes.append((int(number), refusal_words(NodeRefusal(code), rules), None))
        if ask.gpu is not None:
            causes += self._device_causes(ask.gpu, short_of)
        causes.sort(key=lambda cause: -cause[0])
        short = next((resource for _, _, resource in causes if resource), None)
        listed = ", ".join(f"{number} {words}" for number, words, _ in causes)
        count = len(self._books.nodes.known)
        kept = "; some room is held for nominated pods" if self._ledger.holding else ""
        message = f"0/{count} nodes fit: {listed}{self._scattered(ask)}{kept}"
        if not count:
            message = "there are no nodes"
        watch: tuple[Watch, ...] = (ROOM,) if ask.rule_set is None else (ROOM, RULES)
        if ask.rule_set is not None:
            watch += self._volumes.watches(ask.rule_set.rules)
        return Refusal(Reason.NO_NODE_FITS, message, resource=short, watch=watch)

    def _scattered(self, ask: Ask) -> str:
        """`; it needs one node with ...`: where all open nodes together have enough of everything.

        Names the resources of which some node has too little.
        """
        exact, lacking, open_to = dict(ask.shape.requests), [], self._open_nodes(ask)
        fits = np.ones(int(open_to.sum()), dtype=bool)
        for row, amount in ask.room:
            here = np.maximum(self._books.capacity.free.data[row, : len(open_to)][open_to], 0)
            if exact_sum(here) < amount:
                return ""
            if (here < amount).any():
                name = self._books.resources.names[row]
                most = text(name, int(here.max()))
                lacking.append(
                    f"{text(name, exact[name])} {name} (most free on one node is {most})"
                )
            fits &= here >= amount
        return "" if fits.any() else f"; it needs one node with {' and '.join(lacking)}"

    def _device_causes(
        self, gpu: GpuAsk, short_of: NDArray[np.bool_]
    ) -> list[tuple[int, str, str | None]]:
        """How many of these nodes have no fitting devices; how many devices pass each filter."""
        lacking = int((short_of & ~self._books.devices.hold(gpu)).sum())
        steps = ", ".join(
            f"{left.filter} {left.devices}" for left in self._books.devices.explain(gpu)
        )
        return [(lacking, f"without devices for it ({steps})", "devices")] if lacking else []
