"""The weights of namespaces, as they were last told."""

from collections.abc import Callable, Iterable

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.volcano.namespace_weights import weights
from aliquot.engine.model.events import Event, WeightSet

BEAR_ON_WEIGHTS = {"ResourceQuota", "Namespace"}
"""The kinds of objects that decide them."""


class Weights:
    """The weight of every namespace that has another than 1."""

    def __init__(self, tell: Callable[[Event], None]) -> None:
        self.told: dict[str, int] = {}
        self._tell = tell

    def restate(self, objects: Iterable[Manifest]) -> None:
        """Tell of the namespaces whose weight is another than before."""
        before, self.told = self.told, weights(objects)
        for namespace in sorted({*before, *self.told}):
            weight = self.told.get(namespace, 1)
            if weight != before.get(namespace, 1):
                self._tell(WeightSet(namespace, weight))
