"""What kind of cluster is drawn: its policy and knobs, and which kinds of objects it has."""

from random import Random

from aliquot.engine import (
    SECOND,
    Amounts,
    CapacityKnobs,
    EvictionKnobs,
    FairKnobs,
    GpuKnobs,
    HierarchyKnobs,
    Knobs,
    PlacementKnobs,
    QueuesKnobs,
)

GPU = "nvidia.com/gpu"
POLICIES = ("capacity", "fair", "hierarchy", "queues")
NAMESPACES = ("a", "b", "c", "d")


def amounts(**named: int | None) -> Amounts:
    """Amounts by resource (`gpu` is a card), in order; what is None is left out."""
    full = {GPU if name == "gpu" else name: amount for name, amount in named.items()}
    return tuple(sorted((name, amount) for name, amount in full.items() if amount is not None))


def often(rng: Random, part: float) -> bool:
    """True in this part of the draws."""
    return rng.random() < part


class Profile:
    """Which kinds of objects a cluster has. `big`: more nodes and pods."""

    def __init__(self, rng: Random, policy: str, big: bool) -> None:
        self.rng = rng
        self.policy = policy
        self.big = big
        self.with_devices = often(rng, 0.2)
        self.cards_only = not self.with_devices and often(rng, 0.3)
        """Quotas and pods name cards alone, so that no other resource decides."""
        self.with_memory = not self.cards_only and not self.with_devices and often(rng, 0.15)
        """Quotas count the GB of the cards, which differ by node class."""
        self.with_gangs = often(rng, 0.5)
        self.with_constraints = often(rng, 0.4)


def random_knobs(rng: Random) -> Knobs:
    """Knobs with any values that they can have."""
    words = ["creation", "request", "priority", "name"]
    rng.shuffle(words)
    order = tuple("-" * often(rng, 0.3) + word for word in words[: rng.randint(1, 4)])
    return Knobs(
        CapacityKnobs(rng.choice(("unusedMin", "freeCapacity"))),
        FairKnobs(
            rng.choice(("unusedMin", "freeCapacity")),
            order if often(rng, 0.5) else FairKnobs().over_quota_order,
        ),
        HierarchyKnobs(
            rng.choice((10, 60, 120)) * SECOND,
            rng.choice(("demand", "always")),
            often(rng, 0.7),
            often(rng, 0.7),
            rng.choice(("refuse", "implicitChild")),
        ),
        QueuesKnobs(often(rng, 0.3)),
        GpuKnobs(rng.choice(("NodeCompactGPULowLoad", "CompactFirst", "LowLoadFirst"))),
        EvictionKnobs(
            rng.choice((0, 0, 0, 15, 90)) * SECOND,
            rng.choice(("protected", "lowest")),
            rng.choice(("keep", "evict")),
            rng.choice((30, 60, 300)) * SECOND,
        ),
        PlacementKnobs(rng.choice(("pack", "spread"))),
    )
