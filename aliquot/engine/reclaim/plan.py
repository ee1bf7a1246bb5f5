"""What a victim search finds: where each pod of a claim would start, and which pods go for that."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from aliquot.engine.model.pod import Pod
from aliquot.engine.model.reasons import Reason
from aliquot.engine.policies.eligible import Right
from aliquot.engine.reclaim.device_fit import Option
from aliquot.engine.reclaim.victim_set import Cost


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod to evict, the rule, and the message of its eviction."""

    pod: Pod
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The node and devices for each pod of the claim, and the victims."""

    nodes: tuple[str, ...]
    devices: tuple[Option, ...]
    victims: tuple[Victim, ...]
    rank: int
    cost: Cost
    waived: frozenset[Right] = frozenset()
    """Rights of the claim that need not come free (see `Eligible`)."""

    def in_order(self, places: Sequence[int]) -> "Plan":
        """The same for the pods of the claim in another order."""
        nodes = tuple(self.nodes[place] for place in places)
        devices = tuple(self.devices[place] for place in places)
        return replace(self, nodes=nodes, devices=devices)

    @property
    def key(self) -> tuple[int, Cost, tuple[str, ...]]:
        """The plan with the smallest key is the best."""
        return self.rank, self.cost, self.nodes
