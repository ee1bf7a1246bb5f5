"""A claim: what asks to start, as a whole. One pod, or all the pods of a gang.

It goes by the uid of its first pod, and stands in that pod's place in the order of importance.
"""

from aliquot.engine.columns import Vector
from aliquot.engine.objects import Pod
from aliquot.engine.order import Key, importance
from aliquot.engine.placement import Ask


class Claim:
    """Pods that start together or not at all, and the quota they belong to."""

    __slots__ = ("asks", "held", "key", "pods", "priority", "quota", "uid")

    def __init__(
        self,
        pods: tuple[Pod, ...],
        asks: tuple[Ask, ...],
        quota: str | None,
        held: bool = False,
    ) -> None:
        self.pods = pods
        self.asks = asks
        self.quota = quota
        self.held = held
        self.uid = pods[0].uid
        self.priority = pods[0].priority
        self.key: Key = importance(pods[0])

    def uids(self) -> tuple[str, ...]:
        """The uids of its pods."""
        return tuple(pod.uid for pod in self.pods)

    @property
    def size(self) -> int:
        """How many pods it has."""
        return len(self.pods)

    @property
    def kind(self) -> tuple[object, ...]:
        """Claims of one kind differ only in age and name: what holds for one holds for all.

        A claim for which room is held stands alone.
        """
        first = self.pods[0]
        manners = first.preempts, first.preemptible
        stuck = first.gated, first.terminating, first.nominated
        alone = self.uid if self.held else None
        return (self.quota, first.priority, self.asks, manners, stuck, alone)

    def charge(self, node_class: str | None) -> Vector:
        """What its quota is charged for all of its pods, on nodes of this class."""
        if len(self.asks) == 1:
            return self.asks[0].charge(node_class)
        total: dict[int, int] = {}
        for ask in self.asks:
            for row, amount in ask.charge(node_class):
                total[row] = total.get(row, 0) + amount
        return tuple(total.items())
