"""The best node for a pod: one argmax over a column of scores.

`node_scores` keeps the column of the pod's shape; what the rules and preferences of the pod itself
make of it is added here. No two nodes have one score, so ties are broken the same way on every run.
What a pod is told that no node holds is in `room_refusals`.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.changes import Changes
from aliquot.engine.books.ledger import NOWHERE, Ledger
from aliquot.engine.books.node_images import NodeImages
from aliquot.engine.books.nodes import Nodes
from aliquot.engine.books.quota_tree import QuotaTree, Reach
from aliquot.engine.books.volumes import Volumes
from aliquot.engine.columns import Columns, Resources
from aliquot.engine.gpus.devices import Devices
from aliquot.engine.model.knobs import PlacementKnobs
from aliquot.engine.model.pod import Pod, Shape
from aliquot.engine.model.reasons import Refusal
from aliquot.engine.placement.ask import Ask, Moment
from aliquot.engine.placement.constraints import NodeRefusal
from aliquot.engine.placement.domains import Mask, fullest_that_fit
from aliquot.engine.placement.fragmentation.fragmentation import Fragmentation
from aliquot.engine.placement.fragmentation.mix import Mix
from aliquot.engine.placement.free_capacity import FreeCapacity
from aliquot.engine.placement.image_points import ImagePoints
from aliquot.engine.placement.node_books import NodeBooks
from aliquot.engine.placement.node_points import PointsBySource, points_by_source, total
from aliquot.engine.placement.node_scores import POINTS_SHIFT, NodeScores
from aliquot.engine.placement.preferences import OPEN, NodePreferences
from aliquot.engine.placement.room_refusals import RoomRefusals
from aliquot.engine.placement.rule_sets import RuleSet, RuleSets
from aliquot.engine.placement.start_order import own_keys
from aliquot.engine.placement.volumes.filter import VolumeFilter

_MOST_DOMAINS = 32
"""In how many domains a gang is tried, at the cost of placing it once each."""


class Placement:
    """Finds the best node for a pod, given what the ledger says is taken."""

    def __init__(
        self,
        resources: Resources,
        nodes: Nodes,
        quotas: QuotaTree,
        ledger: Ledger,
        devices: Devices,
        changes: Changes,
        volumes: Volumes,
        node_images: NodeImages,
        knobs: PlacementKnobs,
        mix: Mix | None = None,
    ) -> None:
        """`mix`: the pods that are known, where placements are judged by what they leave."""
        self._resources = resources
        self._nodes = nodes
        self._quotas = quotas
        self._ledger = ledger
        self._devices = devices
        self._weights = knobs.weights
        self._asks: dict[Shape | tuple[Shape, RuleSet], Ask] = {}
        self._passing: WeakValueDictionary[tuple[Shape, RuleSet], Ask] = WeakValueDictionary()
        """Those of pods with volumes, which may be of one pod each: forgotten with the pod."""
        self._confined: dict[tuple[Shape, Reach], Shape] = {}
        """Shapes of pods that trees keep on some nodes, or off them."""
        self._preferences = NodePreferences(nodes)
        self._image_points = ImagePoints(nodes, node_images)
        self.volumes = VolumeFilter(nodes, volumes, ledger, changes)
        self.rule_sets = RuleSets(nodes, ledger, self._preferences, self.volumes)
        self._capacity = FreeCapacity(resources, nodes, ledger, changes)
        books = NodeBooks(resources, nodes, devices, self._capacity, self._preferences)
        self.fragmentation = None if mix is None else Fragmentation(books, mix)
        self.scores = NodeScores(books, knobs.score, self.fragmentation)
        self._room_refusals = RoomRefusals(
            *(books, ledger, self.volumes, self.judged, self.open_nodes)
        )
        self._pending_at = -1
        """The version for which the charges of waiting pods were last worked out."""
        self._confined_to: Mask | None = None
        """The only nodes that may be chosen, while a gang is tried in one domain."""

    def refresh(self) -> None:
        """Bring the free capacity of changed nodes up to date."""
        self._capacity.refresh()
        self.volumes.refresh()

    @contextmanager
    def confined(self, nodes: Mask) -> Iterator[None]:
        """Choose among these nodes only; no refusal is remembered meanwhile."""
        before = self._confined_to
        self._confined_to = nodes if before is None else nodes & before
        try:
            yield
        finally:
            self._confined_to = before

    @property
    def is_confined(self) -> bool:
        """Are only some nodes looked at, for now?"""
        return self._confined_to is not None

    def pods_by_node(self, ask: Ask, most: int) -> NDArray[np.int64]:
        """How many such pods each node has room for now, at most `most`.

        Never too few; by rules about other pods, and by devices, fewer may fit.
        """
        self._capacity.refresh()
        count = len(self._nodes.slots)
        found = np.full(count, most, dtype=np.int64)
        for row, amount in ask.room:
            np.minimum(found, self._capacity.free.data[row, :count] // amount, out=found)
        found[(found < 0) | ~self.nodes_by_rules(ask)] = 0
        if ask.gpu is not None:
            found[~self._devices.hold(ask.gpu)] = 0
        return found

    def domains_to_try(self, asks: Sequence[Ask]) -> Iterator[Mask]:
        """The domains in which pods that must run near each other could all have room.

        Where the first of them goes is free, but decides for the others. The fullest domains come
        first, as many as `_MOST_DOMAINS`.
        """
        wanted: dict[int, int] = {}
        for row, amount in (each for ask in asks for each in ask.room):
            wanted[row] = wanted.get(row, 0) + amount
        self._capacity.refresh()
        for key in own_keys(self.rule_sets, asks):
            domains = self.rule_sets.topology.domains(key)
            for number in fullest_that_fit(domains, self._capacity.free, wanted)[:_MOST_DOMAINS]:
                yield domains.of_slot == number

    def renew_rules(self, pods: Collection[Pod]) -> bool:
        """Forget rules of pods that are gone, where they have become many; were they?"""
        if not self.rule_sets.renew(pods):
            return False
        self._passing.clear()
        self._asks = {key: ask for key, ask in self._asks.items() if isinstance(key, Shape)}
        return True

    def shape_ask(self, shape: Shape) -> Ask:
        """The one Ask of a shape, for what does not depend on rules."""
        found = self._asks.get(shape)
        if found is None:
            classes = self._nodes.classes
            found = self._asks[shape] = Ask(shape, self._resources, self.scores.mode, classes)
            if classes.models:
                found.pending = found.charge_while_waiting(self.classes(found))
        return found

    def ask(self, pod: Pod) -> Ask:
        """The one Ask of all pods of this shape, in this tree, for which the same rules hold."""
        rule_set = self.rule_sets.of(pod)
        shape = self._confine(pod) if self._quotas.confines else pod.shape
        if rule_set is None:
            return self.shape_ask(shape)
        key = shape, rule_set
        if pod.rules.volumes:
            found = self._passing.get(key)
            if found is None:
                found = self._passing[key] = self._ruled(shape, rule_set)
            return found
        found = self._asks.get(key)
        if found is None:
            found = self._asks[key] = self._ruled(shape, rule_set)
        return found

    def _confine(self, pod: Pod) -> Shape:
        """The shape of a pod, narrowed to the nodes that the trees leave to its quota."""
        reach = self._quotas.reach(self._quotas.quota_of(pod))
        if not any(reach):
            return pod.shape
        key = pod.shape, reach
        found = self._confined.get(key)
        if found is None:
            within, beyond = reach
            constraints = replace(pod.shape.constraints, within=within, beyond=beyond)
            found = self._confined[key] = replace(pod.shape, constraints=constraints)
        return found

    def _ruled(self, shape: Shape, rule_set: RuleSet) -> Ask:
        """A new Ask of a shape for which rules hold."""
        mode, classes = self.scores.mode, self._nodes.classes
        return Ask(shape, self._resources, mode, classes, rule_set, self.shape_ask(shape))

    def pick(
        self, ask: Ask, classes: list[str] | None = None, images: tuple[str, ...] = ()
    ) -> str | None:
        """The best node for such a pod, of these classes if given; None if no node has room."""
        if classes is None and self._is_plain(ask, images):
            slot = self.scores.best(ask)
            if not ask.prefers:
                return None if slot == NOWHERE else self._nodes.slots.names[slot]
        scores = self._scores(ask, images)
        if classes is not None:
            scores = np.where(self._nodes.of_classes(classes), scores, -1)
        best = int(scores.argmax()) if len(scores) else -1
        if best < 0 or scores.item(best) < 0:
            return None
        return self._nodes.slots.names[best]

    def alternatives(self, ask: Ask, but: str, images: tuple[str, ...] = ()) -> Iterator[str]:
        """The other nodes that have room for such a pod, the best first."""
        scores = self._scores(ask, images)
        for slot in np.argsort(-scores, kind="stable"):
            if scores.item(slot) < 0:
                return
            name = str(self._nodes.slots.names[slot])
            if name != but:
                yield name

    def find(
        self, ask: Ask, classes: list[str] | None, images: tuple[str, ...] = ()
    ) -> str | Refusal:
        """The best node, or why there is none; the refusal is kept until capacity is released.

        Not if bookings are tried: when they are taken back, it may hold no longer. A question is
        answered with the numbers of now, and keeps nothing. The pod's images are no part of its
        ask: they decide which node is best, never whether there is one.
        """
        blocked = None if ask.rule_set is None else self._blocked(ask.rule_set)
        if blocked is not None:
            return blocked
        if classes is not None or self._confined_to is not None:
            return self.pick(ask, classes, images) or self.refusal(ask)
        if ask.refused is not None and not self._ledger.asking:
            moment, refusal = ask.refused
            if moment == self._moment(ask):
                return refusal
        node = self.pick(ask, None, images)
        if node is not None:
            return node
        refusal = self.refusal(ask)
        if not self._ledger.tentative:
            ask.refused = (self._moment(ask), refusal)
        return refusal

    def _blocked(self, rule_set: RuleSet) -> Refusal | None:
        """Why such a pod can start nowhere, whatever the node: what is wrong with its claims."""
        return self.volumes.blocking(rule_set.rules) if rule_set.rules.volumes else None

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

    def has_room_for(self, ask: Ask, number: int) -> bool:
        """Have the nodes room for so many such pods, for which no rules hold, and no devices?"""
        nodes = (self._scores(ask) >= 0).nonzero()[0]
        if len(nodes) >= number or not len(nodes) or not ask.room:
            return bool(len(nodes))
        free = self._capacity.free.data
        fits = [free[row].take(nodes) // amount for row, amount in ask.room]
        return int(np.minimum.reduce(fits).sum()) >= number

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
        if ask.gpu is None:
            return np.ones(len(self._nodes.slots), dtype=bool)
        return self._devices.could_serve_on(ask.gpu)

    def free_soon(self, row: int, leaving: Columns) -> NDArray[np.int64]:
        """What every node has free of a resource once terminating pods have ended."""
        self._capacity.refresh()
        soon: NDArray[np.int64] = self._capacity.free.data[row] + leaving.data[row]
        return soon

    def classes(self, ask: Ask) -> list[str]:
        """The classes of the nodes that such a pod may run on, sorted.

        Where its charge depends on the model of cards, of those that would hold it when empty.
        """
        moment = self._nodes.version
        if ask.classes is None or ask.classes[0] != moment:
            open_to = self.open_nodes(ask)
            if ask.by_model:
                large = np.logical_and(open_to, self._large_enough(ask))
                open_to = large if large.any() else open_to
            ask.note_classes(self._nodes.classes.among(open_to), moment)
        assert ask.classes is not None
        return ask.classes[1]

    def renew_pending(self) -> dict[Shape, None]:
        """The shapes that are charged for another model while they wait, since nodes changed."""
        changed: dict[Shape, None] = {}
        if self._nodes.classes.models and self._pending_at != self._nodes.version:
            self._pending_at = self._nodes.version
            for key, ask in self._asks.items():
                if isinstance(key, Shape) and (ask.by_model or ask.pending != ask.charge_nowhere()):
                    before = ask.pending
                    ask.pending = ask.charge_while_waiting(self.classes(ask))
                    if ask.pending != before:
                        changed[key] = None
        return changed

    def refusal(self, ask: Ask) -> Refusal:
        """Why no node has room for such a pod: how many nodes each filter refuses, with numbers."""
        return self._room_refusals.of(ask)

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
            fits = self._large_enough(ask)
            serves = ask.gpu is None or self._devices.could_serve(ask.gpu)
            ask.feasible = (moment, serves and bool((fits & open_to).any()))
        return ask.feasible[1]

    def _large_enough(self, ask: Ask) -> NDArray[np.bool_]:
        """The nodes that would have room for such a pod if they were empty."""
        if ask.laid_out != len(self._resources):
            ask.lay_out(self._resources, self.scores.mode)
        has = ask.of(self._nodes.allocatable, len(self._nodes.slots))
        large: NDArray[np.bool_] = np.logical_and.reduce(has >= ask.need)
        return large

    def version(self) -> int:
        """Grows whenever the scores of all nodes must be computed anew."""
        return self.scores.version()

    def feasibility_version(self) -> int:
        """Grows whenever `could_hold` may have another answer."""
        return self.scores.version() + self._devices.version

    def _scores(self, ask: Ask, images: tuple[str, ...] = ()) -> NDArray[np.int64]:
        """The scores of the nodes: those of the shape, and what rules and preferences make of them.

        Below zero where the pod does not fit.
        """
        prefers_images = bool(images) and self._image_points.of(images) is not None
        plain = ask if ask.rule_set is None else self.shape_ask(ask.shape)
        scores = self.scores.of(plain)
        if self._confined_to is not None:
            scores = np.where(self._confined_to, scores, -1)
        if ask.rule_set is None and not plain.prefers and not prefers_images:
            return scores
        if ask.rule_set is not None:
            scores = np.where(self.ruled_out(ask) == OPEN, scores, -1)
        if plain.prefers or prefers_images or self._rules_prefer(ask):
            feasible = scores >= 0
            points = total(self.points(ask, feasible, images), self._weights, len(feasible))
            scores = np.where(feasible, scores + (points << POINTS_SHIFT), -1)
        return scores

    def _is_plain(self, ask: Ask, images: tuple[str, ...]) -> bool:
        """Do neither rules nor images nor a domain make of the scores of the shape others?"""
        if ask.rule_set is not None or self._confined_to is not None:
            return False
        return not images or self._image_points.of(images) is None

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

    def has_free(self, ask: Ask) -> NDArray[np.bool_]:
        """The nodes with enough free for such a pod, whatever constraints and rules say."""
        self._capacity.refresh()
        column = self._preferences.of(ask.shape.constraints).codes
        enough: NDArray[np.bool_] = column != NodeRefusal.GONE
        for row, amount in ask.room:
            enough = enough & (self._capacity.free.data[row, : len(column)] >= amount)
        if ask.gpu is not None:
            enough = enough & self._devices.hold(ask.gpu)
        return enough

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
            short |= ~self._devices.hold(ask.gpu)
        if ask.rule_set is None:
            column[short & (column == OPEN)] = NodeRefusal.RESOURCES
        else:
            self.rule_sets.refuse(ask.rule_set, constraints, column, short)
        return column

    def points(
        self, ask: Ask, feasible: NDArray[np.bool_], images: tuple[str, ...] = ()
    ) -> PointsBySource:
        """What such a pod prefers, over the nodes that could hold it."""
        constraints = ask.shape.constraints
        fit, local = self._preferences.of(constraints), self._image_points.of(images)
        return points_by_source(self.rule_sets, ask.rule_set, constraints, fit, feasible, local)
