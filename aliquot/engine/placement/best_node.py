"""The best node for a pod: filter and score in one column of int64.

Pods of one shape have the same scores, so each shape keeps a column of scores over the nodes and
updates only the nodes whose free capacity has changed since it was last read. From the highest bits
down, a score holds: the pod's preference for the node; whether the node has no extended resource
that the pod would leave unused; how full (pack) or empty (spread) the node would be; and the node's
place in the order of names. Below zero, the pod does not fit. So the best node is one argmax, and
ties are broken the same way on every run.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.changes import Changes
from aliquot.engine.books.ledger import Ledger
from aliquot.engine.books.nodes import Nodes
from aliquot.engine.books.volumes import Volumes
from aliquot.engine.columns import Columns, Resources, exact_sum
from aliquot.engine.gpus.devices import Devices
from aliquot.engine.model.gpu import GpuAsk
from aliquot.engine.model.knobs import PlacementKnobs
from aliquot.engine.model.pod import Pod, Shape
from aliquot.engine.model.pod_rules import NO_RULES
from aliquot.engine.model.quantity import text
from aliquot.engine.model.reasons import ROOM, RULES, Reason, Refusal, Watch
from aliquot.engine.placement.ask import MOST_SCORED, Ask, Moment, is_special
from aliquot.engine.placement.constraints import NodeRefusal
from aliquot.engine.placement.domains import Mask, fullest_that_fit
from aliquot.engine.placement.free_capacity import WHOLE, FreeCapacity
from aliquot.engine.placement.node_points import PointsBySource, points_by_source, total
from aliquot.engine.placement.preferences import OPEN, NodePreferences
from aliquot.engine.placement.refusal_words import refusal_words
from aliquot.engine.placement.rule_sets import RuleSet, RuleSets
from aliquot.engine.placement.volumes import VolumeFilter

_RANK_BITS = 20
"""Room for the order of a million nodes."""
_FILL_BITS = 24
"""Bits of the fill: 2 * 31 * 2**18 is less than 2**24. With 20 for the rank, 1 for the
extended resources and 17 for points, a score has 62 bits and stays positive in an int64: five
preferences of at most 100 points, each of a weight of at most 100, are 50,000."""
_POINTS_SHIFT = _RANK_BITS + _FILL_BITS + 1
"""Where the points of preferences begin."""
_INFEASIBLE = -(2**62)
"""The base score of a node that constraints rule out: no fill makes up for it."""
_MOST_WARM = 1024
"""How many shapes keep their scores: at 5,000 nodes 80 KB each, 80 MB in all."""
_MOST_DOMAINS = 32
"""In how many domains a gang is tried, at the cost of placing it once each."""


class Placement:
    """Finds the best node for a pod, given what the ledger says is taken."""

    def __init__(
        self,
        resources: Resources,
        nodes: Nodes,
        ledger: Ledger,
        devices: Devices,
        changes: Changes,
        volumes: Volumes,
        knobs: PlacementKnobs,
    ) -> None:
        self._resources = resources
        self._nodes = nodes
        self._ledger = ledger
        self._devices = devices
        self._mode = knobs.score
        self._weights = knobs.weights
        self._asks: dict[Shape | tuple[Shape, RuleSet], Ask] = {}
        self._passing: WeakValueDictionary[tuple[Shape, RuleSet], Ask] = WeakValueDictionary()
        """Those of pods with volumes, which may be of one pod each: forgotten with the pod."""
        self._warm: dict[Ask, None] = {}
        self._preferences = NodePreferences(nodes)
        self.volumes = VolumeFilter(nodes, volumes, ledger, changes)
        self.rule_sets = RuleSets(nodes, ledger, self._preferences, self.volumes)
        self._specials = ((-1, -1), np.empty(0, dtype=np.int64))
        """How many extended resources every node has, and for which nodes and resources."""
        self._capacity = FreeCapacity(resources, nodes, ledger, changes)
        self._confined_to: Mask | None = None
        """The only nodes that may be chosen, while a gang is tried in one domain."""

    def refresh(self) -> None:
        """Bring the free capacity of changed nodes up to date."""
        self._capacity.refresh()
        self.volumes.refresh()

    @contextmanager
    def confined(self, nodes: Mask) -> Iterator[None]:
        """Choose among these nodes only; no refusal is remembered meanwhile."""
        self._confined_to = nodes
        try:
            yield
        finally:
            self._confined_to = None

    def domains_to_try(self, asks: Iterable[Ask]) -> Iterator[Mask]:
        """The domains in which pods that must run near each other could all have room.

        Where the first of them goes is free, but decides for the others. The fullest domains come
        first, as many as `_MOST_DOMAINS`.
        """
        wanted: dict[int, int] = {}
        for row, amount in (each for ask in asks for each in ask.room):
            wanted[row] = wanted.get(row, 0) + amount
        rule_sets = dict.fromkeys(each for ask in asks if (each := ask.rule_set) is not None)
        self._capacity.refresh()
        for key in dict.fromkeys(k for each in rule_sets for k in self.rule_sets.own_keys(each)):
            domains = self.rule_sets.topology.domains(key)
            for number in fullest_that_fit(domains, self._capacity.free, wanted)[:_MOST_DOMAINS]:
                yield domains.of_slot == number

    def shape_ask(self, shape: Shape) -> Ask:
        """The one Ask of a shape, for what does not depend on rules."""
        found = self._asks.get(shape)
        if found is None:
            found = self._asks[shape] = Ask(shape, self._resources, self._mode)
        return found

    def ask(self, pod: Pod) -> Ask:
        """The one Ask of all pods of this shape for which the same rules hold."""
        rule_set = self.rule_sets.of(pod)
        if rule_set is None:
            return self.shape_ask(pod.shape)
        key = pod.shape, rule_set
        if pod.rules.volumes:
            found = self._passing.get(key)
            if found is None:
                found = Ask(pod.shape, self._resources, self._mode, rule_set)
                self._passing[key] = found
            return found
        found = self._asks.get(key)
        if found is None:
            found = self._asks[key] = Ask(pod.shape, self._resources, self._mode, rule_set)
        return found

    def pick(self, ask: Ask, classes: list[str] | None = None) -> str | None:
        """The best node for such a pod, of these classes if given; None if no node has room."""
        scores = self._scores(ask)
        if classes is not None:
            scores = np.where(self._nodes.of_classes(classes), scores, -1)
        best = int(scores.argmax()) if len(scores) else -1
        if best < 0 or scores.item(best) < 0:
            return None
        return self._nodes.slots.names[best]

    def alternatives(self, ask: Ask, but: str) -> Iterator[str]:
        """The other nodes that have room for such a pod, the best first."""
        scores = self._scores(ask)
        for slot in np.argsort(-scores, kind="stable"):
            if scores.item(slot) < 0:
                return
            name = str(self._nodes.slots.names[slot])
            if name != but:
                yield name

    def find(self, ask: Ask, classes: list[str] | None) -> str | Refusal:
        """The best node, or why there is none; the refusal is kept until capacity is released.

        Not if bookings are tried: when they are taken back, it may hold no longer. A question is
        answered with the numbers of now, and keeps nothing.
        """
        blocked = self._blocked(ask)
        if blocked is not None:
            return blocked
        if classes is not None or self._confined_to is not None:
            return self.pick(ask, classes) or self.refusal(ask)
        ledger = self._ledger
        moment = None if ask.refused is None else self._moment(ask)
        if ask.refused is not None and ask.refused[0] == moment and not ledger.asking:
            return ask.refused[1]
        node = self.pick(ask)
        if node is not None:
            return node
        refusal = self.refusal(ask)
        if not ledger.tentative:
            ask.refused = (self._moment(ask), refusal)
        return refusal

    def _blocked(self, ask: Ask) -> Refusal | None:
        """Why such a pod can start nowhere, whatever the node: what is wrong with its claims."""
        if ask.rule_set is None or not ask.rule_set.rules.volumes:
            return None
        return self.volumes.blocking(ask.rule_set.rules)

    def known_capacity(self, ask: Ask, number: int) -> tuple[int, Refusal] | None:
        """How many such pods the nodes have room for, and why no more, if known to be fewer."""
        if ask.capacity is None or ask.capacity[1] >= number:
            return None
        if ask.capacity[0] != self._moment(ask):
            return None
        if self._ledger.asking:
            return None
        return ask.capacity[1:]

    def note_capacity(self, ask: Ask, number: int, refusal: Refusal) -> None:
        """Remember for how many such pods there is room, until capacity is released."""
        if not self._ledger.tentative:
            ask.capacity = (self._moment(ask), number, refusal)

    def _moment(self, ask: Ask) -> Moment:
        """A refusal holds as long as this stays the same: no capacity released, no node changed.

        Where rules hold, no pod may have come either.
        """
        moment = self._ledger.releases, self.version()
        return moment if ask.rule_set is None else (*moment, *self.rule_moment(ask))

    def rule_moment(self, ask: Ask) -> Moment:
        """Equal as long as the rules that hold for such a pod leave it the same nodes."""
        if ask.rule_set is None:
            return ()
        return self._nodes.version, self.rule_sets.fingerprint(ask.rule_set)

    def has_room(self, ask: Ask, slots: set[int]) -> bool:
        """Has any of these nodes room for such a pod now? By its rules, others may have as well."""
        scores = self._scores(ask)
        if ask.rule_set is not None:
            return bool((scores >= 0).any())
        return any(scores.item(slot) >= 0 for slot in slots)

    def open_nodes(self, ask: Ask) -> NDArray[np.bool_]:
        """The nodes that such a pod may run on, whatever they have free."""
        open_to: NDArray[np.bool_] = self._preferences.of(ask.shape.constraints).codes == OPEN
        return open_to

    def nodes_by_rules(self, ask: Ask) -> NDArray[np.bool_]:
        """The nodes that constraints and rules leave such a pod now, whatever they have free."""
        open_to: NDArray[np.bool_] = self.ruled_out(ask) == OPEN
        return open_to

    def device_nodes(self, ask: Ask) -> NDArray[np.bool_]:
        """The nodes that would have devices for such a pod if all devices were idle."""
        every = np.arange(len(self._nodes.slots))
        if ask.gpu is None:
            return np.ones(len(every), dtype=bool)
        return self._devices.could_serve_on(ask.gpu, every)

    def free_soon(self, row: int, leaving: Columns) -> NDArray[np.int64]:
        """What every node has free of a resource once terminating pods have ended."""
        self._capacity.refresh()
        soon: NDArray[np.int64] = self._capacity.free.data[row] + leaving.data[row]
        return soon

    def classes(self, ask: Ask) -> list[str]:
        """The classes of the nodes that such a pod may run on, sorted."""
        codes = self._preferences.of(ask.shape.constraints).codes
        return sorted(
            {
                node.node_class
                for name, node in self._nodes.known.items()
                if codes.item(self._nodes.slots[name]) == OPEN
            }
        )

    def refusal(self, ask: Ask) -> Refusal:
        """Why no node has room for such a pod: how many nodes fail each filter, with numbers."""
        self._capacity.refresh()
        codes = self._preferences.of(ask.shape.constraints).codes
        open_to = codes == OPEN
        exact = dict(ask.shape.requests)
        causes: list[tuple[int, str, str | None]] = []
        for row, amount in ask.room:
            here = self._capacity.free.data[row, : len(codes)][open_to]
            lacking = int((here < amount).sum())
            if lacking:
                name = self._resources.names[row]
                most = text(name, max(int(here.max()), 0))
                words = f"too little {name} (asks {text(name, exact[name])}, most free {most})"
                causes.append((lacking, words, name))
        column = self.ruled_out(ask)
        rules = NO_RULES if ask.rule_set is None else ask.rule_set.rules
        for code, number in zip(*np.unique(column[column < OPEN], return_counts=True), strict=True):
            if code != NodeRefusal.GONE:
                causes.append((int(number), refusal_words(NodeRefusal(code), rules), None))
        if ask.gpu is not None:
            causes += self._device_causes(ask.gpu, open_to)
        causes.sort(key=lambda cause: -cause[0])
        short = next((resource for _, _, resource in causes if resource), None)
        listed = ", ".join(f"{number} {words}" for number, words, _ in causes)
        count = len(self._nodes.known)
        kept = "; some room is held for nominated pods" if self._ledger.holding else ""
        message = f"0 of {count} nodes can hold it: {listed}{self._scattered(ask, open_to)}{kept}"
        if not count:
            message = "there are no nodes"
        watch: tuple[Watch, ...] = (ROOM,) if ask.rule_set is None else (ROOM, RULES)
        if ask.rule_set is not None:
            watch += self.volumes.watches(ask.rule_set.rules)
        return Refusal(Reason.NO_NODE_FITS, message, resource=short, watch=watch)

    def _scattered(self, ask: Ask, open_to: NDArray[np.bool_]) -> str:
        """`; it needs one node with ...`: where all open nodes together have enough of everything.

        Names the resources of which some node has too little.
        """
        exact, lacking = dict(ask.shape.requests), []
        fits = np.ones(int(open_to.sum()), dtype=bool)
        for row, amount in ask.room:
            here = np.maximum(self._capacity.free.data[row, : len(open_to)][open_to], 0)
            if exact_sum(here) < amount:
                return ""
            if (here < amount).any():
                name = self._resources.names[row]
                most = text(name, int(here.max()))
                lacking.append(
                    f"{text(name, exact[name])} {name} (most free on one node is {most})"
                )
            fits &= here >= amount
        return "" if fits.any() else f"; it needs one node with {' and '.join(lacking)}"

    def _device_causes(
        self, gpu: GpuAsk, open_to: NDArray[np.bool_]
    ) -> list[tuple[int, str, str | None]]:
        """How many nodes have no fitting devices, and how many devices pass each filter."""
        points = self._devices.points(gpu, np.arange(len(open_to)))
        lacking = int(((points < 0) & open_to).sum())
        steps = ", ".join(f"{left.filter} {left.devices}" for left in self._devices.explain(gpu))
        return [(lacking, f"without devices for it ({steps})", "devices")] if lacking else []

    def hardness(self, ask: Ask) -> tuple[int, float]:
        """How hard such a pod is to place: by how few nodes it may run on, then by its size."""
        open_to = self.open_nodes(ask)
        has = self._nodes.allocatable.data[[row for row, _ in ask.room], : len(open_to)]
        most = has.max(axis=1, initial=1)
        size = max((n / most[i] for i, (_, n) in enumerate(ask.room)), default=0.0)
        if ask.gpu is not None:
            request, _ = self._devices.least_need(ask.gpu)
            size = 2.0 if ask.gpu.whole else 1 + request.vram / 2**42 + request.tflops / 2**42
        return -int(open_to.sum()), size

    def could_hold(self, ask: Ask) -> bool:
        """Would any node have room for such a pod if it were empty?"""
        moment = self.feasibility_version()
        if ask.feasible is None or ask.feasible[0] != moment:
            open_to = self.open_nodes(ask)
            if ask.laid_out != len(self._resources):
                ask.lay_out(self._resources, self._mode)
            has = ask.of(self._nodes.allocatable, len(open_to))
            fits = (has >= ask.need).all(axis=0)
            serves = ask.gpu is None or self._devices.could_serve(ask.gpu)
            ask.feasible = (moment, serves and bool((fits & open_to).any()))
        return ask.feasible[1]

    def version(self) -> int:
        """Grows whenever the scores of all nodes must be computed anew: each term only grows."""
        nodes = self._nodes
        return (
            nodes.version
            + len(nodes.slots.names)
            + len(self._resources.names)
            + self._capacity.epoch
        )

    def feasibility_version(self) -> int:
        """Grows whenever `could_hold` may have another answer."""
        return self.version() + self._devices.version

    def _scores(self, ask: Ask) -> NDArray[np.int64]:
        """The scores of the nodes: those of the shape, and what rules and preferences make of them.

        Below zero where the pod does not fit.
        """
        plain = ask if ask.rule_set is None else self.shape_ask(ask.shape)
        scores = self._refreshed(plain)
        if self._confined_to is not None:
            scores = np.where(self._confined_to, scores, -1)
        if ask.rule_set is None and not plain.prefers:
            return scores
        if ask.rule_set is not None:
            scores = np.where(self.ruled_out(ask) == OPEN, scores, -1)
        if plain.prefers or self._rules_prefer(ask):
            feasible = scores >= 0
            points = total(self.points(ask, feasible), self._weights, len(feasible))
            scores = np.where(feasible, scores + (points << _POINTS_SHIFT), -1)
        return scores

    def _rules_prefer(self, ask: Ask) -> bool:
        return ask.rule_set is not None and self.rule_sets.prefers(ask.rule_set)

    def ruled_out(self, ask: Ask) -> NDArray[np.int64]:
        """By node, `OPEN`, or why it is refused whatever it has free: constraints, then rules."""
        constraints = ask.shape.constraints
        codes = self._preferences.of(constraints).codes
        if ask.rule_set is None:
            return codes
        column = codes.copy()
        self.rule_sets.refuse(ask.rule_set, constraints, column)
        return column

    def judged(self, ask: Ask) -> NDArray[np.int64]:
        """By node, `OPEN`, or the first reason why such a pod cannot start there now.

        First in the order of kube-scheduler's plugins.
        """
        self._capacity.refresh()
        constraints = ask.shape.constraints
        column = self._preferences.of(constraints).codes.copy()
        if ask.rule_set is not None and (code := self.volumes.blocking_code(ask.rule_set.rules)):
            column[:] = code
            return column
        short = np.zeros(len(column), dtype=bool)
        for row, amount in ask.room:
            short |= self._capacity.free.data[row, : len(column)] < amount
        if ask.gpu is not None:
            short |= self._devices.points(ask.gpu, np.arange(len(column))) < 0
        if ask.rule_set is None:
            column[short & (column == OPEN)] = NodeRefusal.RESOURCES
        else:
            self.rule_sets.refuse(ask.rule_set, constraints, column, short)
        return column

    def points(self, ask: Ask, feasible: NDArray[np.bool_]) -> PointsBySource:
        """What such a pod prefers, over the nodes that could hold it."""
        constraints = ask.shape.constraints
        fit = self._preferences.of(constraints)
        return points_by_source(self.rule_sets, ask.rule_set, constraints, fit, feasible)

    def _refreshed(self, ask: Ask) -> NDArray[np.int64]:
        """The scores of a shape, up to date."""
        self._capacity.refresh()
        recomputed = self._capacity.recomputed
        version = self.version()
        if ask.version != version:
            self._keep_warm(ask)
            self._rebase(ask)
            ask.scores = self._score(ask, np.arange(len(self._nodes.slots)))
            ask.version = version
        elif ask.read < len(recomputed):
            changed = np.array(list(set(recomputed[ask.read :])))
            ask.scores[changed] = self._score(ask, changed)
        ask.read = len(recomputed)
        return ask.scores

    def _keep_warm(self, ask: Ask) -> None:
        """Bound the memory: beyond _MOST_WARM shapes, drop the scores computed longest ago."""
        self._warm.pop(ask, None)
        self._warm[ask] = None
        if len(self._warm) > _MOST_WARM:
            oldest = next(iter(self._warm))
            oldest.drop_scores()
            del self._warm[oldest]

    def _rebase(self, ask: Ask) -> None:
        """Compute the part of the scores that changes only with the nodes."""
        if ask.laid_out != len(self._resources):
            ask.lay_out(self._resources, self._mode)
        fit = self._preferences.of(ask.shape.constraints)
        ask.prefers = fit.prefers
        count = len(fit.codes)
        has = ask.of(self._nodes.allocatable, count)
        used = self._nodes.allocatable.data[ask.special, :count] != 0
        lean = self._special()[:count] == used.sum(axis=0)
        takes = np.minimum(ask.request / np.maximum(has, 1), 1) * WHOLE
        fill = MOST_SCORED * WHOLE - ask.slope @ takes.astype(np.int64)
        base = (lean.astype(np.int64) << _FILL_BITS) + fill
        base = (base << _RANK_BITS) + (2**_RANK_BITS - 1 - self._nodes.rank)
        ask.base = np.where(fit.codes == OPEN, base, _INFEASIBLE)

    def _special(self) -> NDArray[np.int64]:
        """How many extended resources every node has."""
        moment = (self._nodes.version, len(self._resources))
        if self._specials[0] != moment:
            names = self._resources.names
            rows = [row for row, name in enumerate(names) if is_special(name)]
            counts = np.zeros(self._nodes.allocatable.width, dtype=np.int64)
            for row in rows:
                counts += self._nodes.allocatable.data[row] != 0
            self._specials = (moment, counts)
        return self._specials[1]

    def _score(self, ask: Ask, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """The scores of some nodes. Its cost is the number of numpy calls, so it makes few."""
        unfit = np.logical_or.reduce(ask.at(self._capacity.free, slots) < ask.need)
        scores = ask.slope @ ask.at(self._capacity.part, slots)
        if ask.gpu is not None:
            scores += (points := self._devices.points(ask.gpu, slots))
            unfit |= points < 0
        scores <<= _RANK_BITS
        scores += ask.base.take(slots)
        np.putmask(scores, unfit, -1)
        return scores
