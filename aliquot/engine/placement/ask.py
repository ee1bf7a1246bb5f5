"""An ask: what pods of one shape, for which the same rules hold, request of a node.

It is the request by rows of the columns, laid out for scores over all nodes, and keeps what was
last found for it: its scores, or why no node has room.
"""

import numpy as np
from numpy.typing import NDArray

from aliquot.engine.columns import Columns, Resources, Vector
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
_PLAIN = ("cpu", "memory", "ephemeral-storage", "pods", "hugepages-", GPU_MEMORY)
"""Resources that all nodes have: a pod that does not request them leaves nothing special unused."""

Moment = tuple[object, ...]
"""What a refusal depends on: as long as this is equal, it holds."""


class Ask:
    """The request of a shape, by rows of the columns, with its scores over the nodes."""

    def __init__(
        self, shape: Shape, resources: Resources, mode: ScoreMode, rule_set: RuleSet | None = None
    ) -> None:
        self.shape = shape
        self.rule_set = rule_set
        """The rules about other pods, ports and volumes that hold for it, if any do."""
        self.prefers = False
        """Is some node better than another for it, apart from how full they are?"""
        self.gpu = None if shape.gpu is None or shape.gpu.sliced else shape.gpu
        """Its request of GPU devices, unless the node assigns them (slices)."""
        self.room = resources.vector(shape.requests)
        charges = {name: resources.vector(amounts) for name, amounts in shape.charges}
        self._charge = charges.pop("", self.room)
        self._charges = charges
        self.read = 0
        """How far its scores have read the list of recomputed nodes."""
        self.refused: tuple[Moment, Refusal] | None = None
        """Why no node has room, and until when that holds (see `Placement._moment`)."""
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
        self.version = -1

    def charge(self, node_class: str | None) -> Vector:
        """What a quota is charged for such a pod on nodes of a class; None while it is pending."""
        if node_class is None:
            return self._charge
        return self._charges.get(node_class, self._charge)

    @property
    def by_class(self) -> bool:
        """Does the charge depend on the node's class?"""
        return bool(self._charges)

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
        self.special = [row for row in asked if is_special(resources.names[row])]
        """The extended resources that it asks for."""

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
