"""Random objects of a cluster: nodes, quotas, gangs, pods, GPUs, budgets.

Everything is drawn from one `random.Random`, so that a seed gives the same objects whatever the
code that plays with them. Amounts are small: clusters where everything fits decide nothing.
"""

from dataclasses import replace
from random import Random

from aliquot.engine import (
    GPU_MEMORY,
    SECOND,
    WHOLE_GPU,
    Amounts,
    Budget,
    CapacityKnobs,
    Device,
    EvictionKnobs,
    FairKnobs,
    Gang,
    GpuAmount,
    GpuAsk,
    GpuBound,
    GpuKnobs,
    GpuQuota,
    HierarchyKnobs,
    Knobs,
    Node,
    NodeConstraints,
    PlacementKnobs,
    Pod,
    QueuesKnobs,
    Quota,
    Requirement,
    Shape,
    Taint,
    Term,
    Toleration,
)

GPU = "nvidia.com/gpu"
GIB = 2**30
POLICIES = ("capacity", "fair", "hierarchy", "queues")
NAMESPACES = ("a", "b", "c", "d")
LENT_TO = ("a", "b")
"""In some clusters only these have pods: they share what the quotas of the others leave idle."""
CLASSES = ("", "40GB", "80GB")
MEMORY = {"": 32, "40GB": 40, "80GB": 80}
"""GB of GPU memory that a card of a node class counts as."""
CARD = GpuAmount(100_000, 80 * GIB)
TASKS = ("", "m", "w")


def amounts(**named: int | None) -> Amounts:
    """Amounts by resource (`gpu` is a card), in order; what is None is left out."""
    full = {GPU if name == "gpu" else name: amount for name, amount in named.items()}
    return tuple(sorted((name, amount) for name, amount in full.items() if amount is not None))


def often(rng: Random, part: float) -> bool:
    """True in this part of the draws."""
    return rng.random() < part


class Objects:
    """What one cluster is made of, and new objects of that kind."""

    def __init__(self, rng: Random, policy: str, big: bool) -> None:
        self.rng = rng
        self.policy = policy
        self.big = big
        self.with_devices = often(rng, 0.2)
        self.cards_only = not self.with_devices and often(rng, 0.3)
        """Quotas and pods name cards alone, so that no other resource decides."""
        self.with_memory = not self.cards_only and not self.with_devices and often(rng, 0.15)
        self.with_gangs = often(rng, 0.5)
        self.with_constraints = often(rng, 0.4)
        self.shapes = [self.shape() for _ in range(rng.randint(2, 6))]
        self.leaves: list[str] = []
        self.named: list[str | None] = [None]
        """The quotas that pods name."""
        self.namespaces: tuple[str, ...] = (*NAMESPACES, "e")
        self.borrower: tuple[str, str | None] | None = None
        """The namespace and quota of most pods at first: they borrow, others reclaim later."""

    def knobs(self) -> Knobs:
        """Knobs with any values that they can have."""
        rng = self.rng
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

    def node(self, name: str) -> Node:
        """A node, at times tainted."""
        rng = self.rng
        taints: tuple[Taint, ...] = ()
        if self.with_constraints and often(rng, 0.3):
            taints = (
                rng.choice(
                    (
                        Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"),
                        Taint("dedicated", "ml", "NoSchedule"),
                        Taint("old", "", "PreferNoSchedule"),
                        Taint("node.kubernetes.io/not-ready", "", "NoExecute"),
                    )
                ),
            )
        cards = 10 if self.cards_only else rng.choice((2, 4, 6, 8))
        size = rng.choice(CLASSES) if self.with_memory else ""
        has = amounts(cpu=1000 * rng.randint(6, 24), gpu=cards, pods=rng.choice((10, 30)))
        if self.with_memory:
            has = tuple(sorted((*has, (GPU_MEMORY, cards * MEMORY[size]))))
        return Node(name, has, (("zone", rng.choice("xy")), ("name", name)), taints, size)

    def devices(self, node: str) -> list[Device]:
        """The cards of a node, where cards are chosen one by one."""
        rng = self.rng
        model = rng.choice(("a100", "h100"))
        return [self.device(f"{node}-gpu{i}", node, i, model) for i in range(rng.randint(1, 4))]

    def device(self, name: str, node: str, index: int, model: str) -> Device:
        """One card."""
        used = GpuAmount(20_000, 8 * GIB) if often(self.rng, 0.1) else GpuAmount()
        ready = not often(self.rng, 0.05)
        return Device(name, node, CARD, used, model, "nvidia", "pool", index, ready)

    def gpu_quota(self, namespace: str) -> GpuQuota:
        """What a namespace may use of cards."""
        rng = self.rng
        most = rng.choice((0, 100, 200, 300))
        requests = GpuBound(most * 1000, None if often(rng, 0.5) else rng.randint(1, 4) * 80 * GIB)
        single = GpuBound(rng.choice((60, 100)) * 1000) if often(rng, 0.3) else GpuBound()
        workers = rng.randint(1, 8) if often(rng, 0.5) else None
        limits = GpuBound(most * 1500) if often(rng, 0.5) else GpuBound()
        count = rng.randint(1, 2) if often(rng, 0.2) else None
        return GpuQuota(
            *(namespace, "gpus", requests, limits, workers), rng.choice((50, 95)), single,
            single_count=count,
        )  # fmt: skip

    def gpu_ask(self) -> GpuAsk:
        """Parts of cards, whole cards, or slices."""
        rng = self.rng
        amount = GpuAmount(rng.choice((20, 30, 50, 100)) * 1000, rng.choice((10, 20, 40)) * GIB)
        part = GpuAmount(rng.choice((25, 50)) * WHOLE_GPU // 100, WHOLE_GPU // 4)
        whole = GpuAmount(WHOLE_GPU, WHOLE_GPU)
        return rng.choice(
            (
                GpuAsk(amount, amount),
                GpuAsk(amount, amount.plus(GpuAmount(10_000)), count=rng.randint(1, 3)),
                GpuAsk(request_part=part, limit_part=part),
                GpuAsk(request_part=whole, limit_part=whole, whole=True, count=rng.randint(1, 2)),
                GpuAsk(amount, amount, model=rng.choice(("a100", "h100"))),
                GpuAsk(amount, amount, indices=(0, 1)),
                GpuAsk(amount, amount, sliced=True),
            )
        )

    def shape(self) -> Shape:
        """What a pod requests, and the nodes that it may run on."""
        rng = self.rng
        constraints = self._constraints() if self.with_constraints else NodeConstraints()
        cpu = rng.choice((None, None, 500, 1000, 2000))
        if self.with_devices and often(rng, 0.7):
            return Shape(amounts(cpu=cpu, pods=1), constraints, (), self.gpu_ask())
        if self.cards_only:
            return Shape(amounts(gpu=rng.choice((1, 1, 1, 2)), pods=1), constraints)
        cards = rng.choice((None, 1, 1, 1, 1, 2, 2, 2, 3, 4, 9))
        requests = amounts(cpu=cpu, gpu=cards, pods=1)
        charges: tuple[tuple[str, Amounts], ...] = ()
        if self.with_memory and cards:
            charges = tuple(
                (size, tuple(sorted((*requests, (GPU_MEMORY, cards * memory)))))
                for size, memory in MEMORY.items()
            )
        return Shape(requests, constraints, charges)

    def _constraints(self) -> NodeConstraints:
        return self.rng.choice(
            (
                *(NodeConstraints(),) * 4,
                NodeConstraints(selector=(("zone", "x"),)),
                NodeConstraints(required=(Term((Requirement("zone", "NotIn", ("x",)),)),)),
                NodeConstraints(preferred=((10, Term((Requirement("zone", "In", ("y",)),))),)),
                NodeConstraints(tolerations=(Toleration(operator="Exists"),)),
                NodeConstraints(tolerations=(Toleration("dedicated", "Equal", "ml"),)),
            )
        )

    def bounds(self, deep: int = 1) -> tuple[Amounts, Amounts]:
        """A min and a max above it; either may leave resources out."""
        rng = self.rng
        cards = rng.choice((0, 1, 2, 2, 3, 4, 5)) * deep
        cpu = rng.choice((None, None, 2000, 4000, 8000))
        if self.cards_only:
            return amounts(gpu=rng.randint(1, 6)), amounts(gpu=12) if often(rng, 0.2) else ()
        low = {"gpu": cards, "cpu": cpu}
        high: dict[str, int | None] = {}
        if often(rng, 0.5):
            high["gpu"] = cards + rng.randint(0, 6)
        if cpu is not None and often(rng, 0.3):
            high["cpu"] = cpu + 1000 * rng.randint(0, 6)
        lows, highs = amounts(**low), amounts(**high)
        if self.with_memory and often(rng, 0.6):
            lows = tuple(sorted((*lows, (GPU_MEMORY, 40 * cards))))
        return lows, highs

    def quotas(self) -> list[Quota]:
        """The quotas of the policy, each after its parent."""
        made = {
            "capacity": self._flat,
            "fair": self._flat,
            "hierarchy": self._tree,
            "queues": self._queues,
        }[self.policy]()
        self.leaves = [quota.name for quota in made if not quota.is_parent]
        if often(self.rng, 0.7):
            first = self.rng.choice(self.leaves)
            flat = self.policy in ("capacity", "fair")
            self.borrower = (first[0], None) if flat else (self.rng.choice(NAMESPACES), first)
        return made

    def _flat(self) -> list[Quota]:
        rng = self.rng
        groups = ("", "east", "west") if often(rng, 0.3) else ("",)
        made: list[Quota] = []
        teams = list(NAMESPACES[: rng.randint(2, 4)])
        if self.cards_only or often(rng, 0.4):
            self.namespaces = LENT_TO
        if often(rng, 0.2):
            shared = frozenset({teams.pop(), "e"})
            made.append(Quota("shared", *self.bounds(), namespaces=shared))
        made += [
            Quota(
                f"{team}/quota",
                *self.bounds(),
                namespaces=frozenset({team}),
                group=rng.choice(groups),
            )
            for team in teams
        ]
        self.named = [None]
        return made

    def _tree(self) -> list[Quota]:
        rng = self.rng
        made: list[Quota] = []
        top: str | None = None
        if often(rng, 0.3):
            top = "root"
            made.append(Quota("root", *self.bounds(4), is_parent=True))
        for team in NAMESPACES[: rng.randint(2, 4)]:
            parent = often(rng, 0.5)
            made.append(self._tree_quota(team, top, parent))
            children = "xy" if parent else ""
            made += [self._tree_quota(f"{team}{child}", team, False) for child in children]
        if often(rng, 0.4):
            made.append(Quota("default", fallback=True))
        if often(rng, 0.2):
            made.append(Quota("system", unshared=True))
        leaves = [quota.name for quota in made if not quota.is_parent]
        self.named = [None, *leaves * 3, *(quota.name for quota in made)]
        return made

    def _tree_quota(self, name: str, parent: str | None, is_parent: bool) -> Quota:
        rng = self.rng
        low, high = self.bounds(2 if is_parent else 1)
        weight = amounts(gpu=rng.randint(1, 5), cpu=rng.randint(1, 5)) if often(rng, 0.5) else high
        return Quota(
            name,
            low,
            high,
            weight,
            parent,
            lend=not often(rng, 0.2),
            namespaces=frozenset({name}),
            is_parent=is_parent,
        )

    def _queues(self) -> list[Quota]:
        rng = self.rng
        made: list[Quota] = []
        for name in ("p", "q", "r", "s")[: rng.randint(2, 4)]:
            parent = often(rng, 0.3)
            made.append(self._queue(name, None, parent))
            children = range(rng.randint(2, 3) if parent else 0)
            made += [self._queue(f"{name}{child}", name, False) for child in children]
        if often(rng, 0.9):
            made.append(Quota("default", fallback=True, lend=False, default_weight=1))
        names = [quota.name for quota in made]
        leaves = [quota.name for quota in made if not quota.is_parent]
        self.named = [*leaves * 6, *names, None, "missing"]
        return made

    def _queue(self, name: str, parent: str | None, is_parent: bool) -> Quota:
        rng = self.rng
        low, high = self.bounds()
        return Quota(
            name,
            low if often(rng, 0.3) else (),
            high if often(rng, 0.4) else (),
            parent=parent,
            is_parent=is_parent,
            lend=False,
            default_weight=rng.randint(1, 4),
            deserved=amounts(gpu=rng.randint(0, 6)) if often(rng, 0.25) else (),
            reclaimable=not often(rng, 0.1),
            closed=often(rng, 0.05),
            priority=rng.choice((0, 0, 0, 5)),
        )

    def edited(self, quota: Quota) -> Quota:
        """A quota with other bounds, weight or state; its place in the tree stays."""
        rng = self.rng
        low, high = self.bounds(2 if quota.is_parent else 1)
        changes = [{"min": low, "max": high}, {"max": high}, {"min": low, "max": ()}]
        if quota.fallback or quota.unshared:
            changes = [{"max": amounts(gpu=rng.randint(0, 6))}]
        new: Quota = replace(quota, **rng.choice(changes))
        if self.policy == "hierarchy":
            new = replace(new, lend=not often(rng, 0.2))
        if self.policy == "queues":
            weight = rng.randint(1, 4)
            new = replace(new, default_weight=weight, closed=often(rng, 0.15))
        if self.policy in ("capacity", "fair") and often(rng, 0.1):
            new = replace(new, group=rng.choice(("", "east", "west")))
        return new

    def gang(self, name: str, created: int) -> Gang:
        """A gang, at times with tasks, with resources that it asks for before its pods exist."""
        rng = self.rng
        least = rng.randint(1, 4)
        tasks = {"m": rng.randint(0, 1), "w": rng.randint(0, 2)}
        needed = tuple((task, number) for task, number in tasks.items() if number)
        return Gang(
            name,
            least,
            needed if often(rng, 0.3) and sum(tasks.values()) <= least else (),
            amounts(gpu=rng.randint(1, 6)) if often(rng, 0.4) else (),
            rng.choice(self.named) if often(rng, 0.7) else None,
            rng.choice((None, None, 10)),
            created,
            (("w", 1),) if often(rng, 0.1) else (),
        )

    def namespace(self) -> str:
        """A namespace that pods are in."""
        rng = self.rng
        if self.policy == "hierarchy" and often(rng, 0.6):
            return rng.choice(self.leaves)
        return "kube-system" if often(rng, 0.02) else rng.choice(self.namespaces)

    def pod(self, uid: str, created: int) -> Pod:
        """A pod that is in no gang."""
        rng = self.rng
        namespace, named = self.namespace(), rng.choice(self.named)
        if self.borrower is not None and often(rng, 0.8 if created < 3 else 0.1):
            namespace, named = self.borrower
        if often(rng, 0.15):
            self.shapes.append(self.shape())
        return Pod(
            uid,
            namespace,
            uid,
            rng.choice(self.shapes),
            rng.choice((0, 0, 0, 0, 10, 10, 100)),
            created,
            quota=named,
            gated=often(rng, 0.12 if self.policy == "hierarchy" else 0.03),
            preempts=not often(rng, 0.05),
            preemptible=not often(rng, 0.06),
            labels=(("app", rng.choice("uvw")),) if often(rng, 0.5) else (),
        )

    def budget(self, namespace: str, app: str) -> Budget:
        """A disruption budget of the pods of an app."""
        allowed = self.rng.choice((0, 0, 1, 2))
        return Budget(namespace, f"budget-{app}", allowed, (Requirement("app", "In", (app,)),))
