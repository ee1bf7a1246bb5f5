"""An ask: what pods of one shape, for which the same rules hold, request of a node.

It is the request by rows of the columns, laid out for scores over all nodes, and keeps what was
last found for it: its scores, or why no node has room.
"""

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.books.node_classes import ANY_CLASS, NodeClasses
from aliquot.engine.columns import Columns, Resources, Vector
from aliquot.engine.model.gpu import MODEL_PREFIX
from aliquot.engine.model.knobs import ScoreMode
from aliquot.engine.model.pod import GPU_MEMORY, Shape
from aliquot.engine.model.reasons import Refusal
from aliquot.engine.placement.free_capacity import FEW_ROWS
from aliquot.engine.placement.rule_sets import RuleSet

MOST_SCORED = 31
"""How many requested resources count in the fill of a node: the most whose sum fits the bits of
the fill (see `best_node`)."""
_UNASKED = -(2**63)
"""The need of a resource that is not requested: every node has that."""
_PLAIN = ("cpu", "memory", "ephemeral-storage", "pods", "hugepages-", GPU_MEMORY, MODEL_PREFIX)
"""Resources that all nodes have: a pod that does not request them leaves nothing special unused."""

Moment = tuple[object, ...]
"""What a refusal depends on: as long as this is equal, it holds."""


class Ask:
    """The request of a shape, by rows of the columns, with its scores over the nodes."""

    __slots__ = (
        "__weakref__",
        "_by_class",
        "_charge",
        "_charges",
        "_classes",
        "_scored_rows",
        "base",
        "base_cells",
        "best",
        "best_score",
        "capacity",
        "cells",
        "classes",
        "feasible",
        "gpu",
        "is_narrow",
        "is_plain",
        "laid_out",
        "mix",
        "need",
        "needs",
        "pending",
        "plain",
        "prefers",
        "read",
        "refused",
        "request",
        "room",
        "rows",
        "rule_set",
        "scored",
        "scores",
        "shape",
        "slope",
        "special",
        "takes",
        "told",
        "version",
    )

    def __init__(
        self,
        shape: Shape,
        resources: Resources,
        mode: ScoreMode,
        classes: NodeClasses,
        rule_set: RuleSet | None = None,
        plain: "Ask | None" = None,
    ) -> None:
        self.shape = shape
        self.plain = plain or self
        """The ask of the shape alone."""
        self.rule_set = rule_set
        """The rules about other pods, ports and volumes that hold for it, if any do."""
        self.prefers = False
        """Is some node better than another for it, apart from how full they are?"""
        self.is_narrow = False
        """Are most nodes closed to it? Then scores of these are not computed anew."""
        self.gpu = None if shape.gpu is None or shape.gpu.sliced else shape.gpu
        """Its request of GPU devices, unless the node assigns them (slices)."""
        self.room = resources.vector(shape.requests)
        charges = {name: resources.vector(amounts) for name, amounts in shape.charges}
        self._charge = charges.pop("", self.room)
        self._charges = charges
        self._classes = classes
        self._by_class: dict[str, Vector] = {}
        """The charges of the classes that were asked for."""
        self.classes: tuple[int, list[str]] | None = None
        """The classes of the nodes open to such a pod, for this version of nodes."""
        self.pending: Vector = self._charge
        """What a quota is charged while such a pod waits."""
        self.best = 0
        self.best_score: int | None = None
        """The node with the highest score, and that score; None if it must be looked for."""
        self.read = 0
        """How far its scores have read the list of recomputed nodes."""
        self.refused: tuple[Moment, Refusal] | None = None
        """Why no node has room, and until when that holds (see `Placement._moment`)."""
        self.told: tuple[Moment, Refusal] | None = None
        """The same with the numbers of now, and until when these hold (see `refusal`)."""
        self.capacity: tuple[Moment, int, Refusal] | None = None
        """How many such pods the nodes have room for, and why no more, and until when."""
        self.feasible: tuple[int, bool] | None = None
        """Whether an empty node would hold such a pod, for this version of nodes and devices."""
        self.drop_scores()
        self.lay_out(resources, mode)

    def drop_scores(self) -> None:
        """Drop the scores; they are computed anew when next read."""
        self.scores: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self.base: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self.takes: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        """How much fuller or emptier it makes each node."""
        self.cells: memoryview[int] = self.scores.data
        self.base_cells: memoryview[int] = self.base.data
        """The same as `scores` and `base`, for reading and writing single nodes."""
        self.best_score = None
        self.version = -1
        self.mix = 0
        """The version of the mix of pods by which they were computed."""

    def charge(self, node_class: str | None) -> Vector:
        """What a quota is charged for such a pod on nodes of a class; None while it is pending."""
        if node_class is None:
            return self.plain.pending
        found = self._by_class.get(node_class)
        if found is None:
            found = self._by_class[node_class] = self._work_out(node_class)
        return found

    def charge_nowhere(self) -> Vector:
        """What a quota is charged for such a pod on a node that is not known."""
        return self._charge

    def _work_out(self, node_class: str) -> Vector:
        """The charge by the node class; and of cards, the same amount of their model."""
        charge = self._charges.get(self._classes.plain(node_class), self._charge)
        models = dict(self._classes.models_of(node_class))
        return (*charge, *((models[row], amount) for row, amount in self.room if row in models))

    @property
    def by_class(self) -> bool:
        """Does the charge depend on the node's class?"""
        return bool(self._charges) or (bool(self._classes.models) and self.by_model)

    @property
    def by_model(self) -> bool:
        """Does the charge depend on the model of the node's cards?"""
        models = self._classes.models
        return bool(models) and any(row in models for row, _ in self.room)

    def note_classes(self, classes: list[str], moment: int) -> None:
        """Note the classes of the nodes that such a pod may run on, and the most it is charged."""
        self.classes = moment, classes
        charges = [dict(self.charge(name)) for name in classes]
        rows = dict.fromkeys(row for charge in charges for row in charge)
        most = tuple((row, max(charge.get(row, 0) for charge in charges)) for row in rows)
        self._by_class[ANY_CLASS] = most or self._charge

    def charge_while_waiting(self, classes: list[str]) -> Vector:
        """The charge of a waiting pod: by model only if it can run on no other."""
        models = [dict(self._classes.models_of(name)) for name in classes]
        charge = self._charge
        for row, amount in self.room if self.by_model else ():
            of_row = {each.get(row) for each in models}
            model = of_row.pop() if len(of_row) == 1 else None
            if model is not None:
                charge = (*charge, (model, amount))
        return charge

    def lay_out(self, resources: Resources, mode: ScoreMode) -> None:
        """Write the request as arrays, over all rows; of many rows, over those it asks for."""
        self.laid_out = rows = len(resources)
        many = rows > FEW_ROWS
        self.rows = np.array([row for row, _ in self.room], dtype=np.int64) if many else None
        """The rows of the arrays; None for all."""
        places = {row: i if many else row for i, (row, _) in enumerate(self.room)}
        rows = len(places) if many else rows
        self.request = np.zeros((rows, 1), dtype=np.int64)
        self.need = np.full((rows, 1), _UNASKED, dtype=np.int64)
        self.slope = np.zeros(rows, dtype=np.int64)
        for row, amount in self.room:
            self.request[places[row]] = self.need[places[row]] = amount
        asked = [row for row, _ in self.room if resources.names[row] != "pods"]
        if self.gpu is None:
            scored = [places[row] for row in asked[:MOST_SCORED]]
            self.slope[scored] = 1 if mode == "spread" else -1
        self.is_plain = self.gpu is None and not many
        """Do only free amounts decide, in arrays of all rows?"""
        self._scored_rows = asked[:MOST_SCORED] if self.is_plain else []
        """The rows of which the free parts are scored."""
        self.needs: Vector = ()
        self.scored: tuple[int, ...] = ()
        self.special = [row for row in asked if is_special(resources.names[row])]
        """The extended resources that it asks for."""

    def find_cells(self, width: int) -> None:
        """Find where the rows that it asks for, and those that are scored, begin in the cells."""
        self.needs = tuple((row * width, amount) for row, amount in self.room)
        self.scored = tuple(row * width for row in self._scored_rows)

    def of(self, columns: Columns, count: int) -> NDArray[np.int64]:
        """The first slots of columns, in the rows of its arrays."""
        data = columns.data[:, :count]
        return data if self.rows is None else data[self.rows]

    def at(self, columns: Columns, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """These slots of columns, in the rows of its arrays."""
        if self.rows is None:
            return columns.data.take(slots, 1)
        return columns.data[self.rows[:, None], slots]


def is_special(resource: str) -> bool:
    """Is it an extended resource, that only some nodes have?"""
    return not resource.startswith(_PLAIN)
