"""Random objects of a cluster: nodes, devices, gangs, pods, budgets.

Everything is drawn from one `random.Random`, so that a seed gives the same objects whatever the
code that plays with them. Amounts are small: clusters where everything fits decide nothing.
"""

from aliquot.engine import (
    GPU_MEMORY,
    WHOLE_GPU,
    Amounts,
    Budget,
    Device,
    Gang,
    GpuAmount,
    GpuAsk,
    GpuBound,
    GpuQuota,
    Node,
    NodeConstraints,
    Pod,
    Requirement,
    Shape,
    Taint,
    Term,
    Toleration,
)

from .profile import Profile, amounts, often
from .quotas import Quotas

GIB = 2**30
CLASSES = ("", "40GB", "80GB")
MEMORY = {"": 32, "40GB": 40, "80GB": 80}
"""GB of GPU memory that a card of a node class counts as."""
CARD = GpuAmount(100_000, 80 * GIB)


class Objects:
    """What one cluster is made of, and new objects of that kind."""

    def __init__(self, profile: Profile) -> None:
        self.rng = profile.rng
        self.profile = profile
        self.shapes = [self.shape() for _ in range(profile.rng.randint(2, 6))]
        self.quotas = Quotas(profile)

    def node(self, name: str) -> Node:
        """A node, at times tainted."""
        rng = self.rng
        taints: tuple[Taint, ...] = ()
        if self.profile.with_constraints and often(rng, 0.3):
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
        cards = 10 if self.profile.cards_only else rng.choice((2, 4, 6, 8))
        size = rng.choice(CLASSES) if self.profile.with_memory else ""
        has = amounts(cpu=1000 * rng.randint(6, 24), gpu=cards, pods=rng.choice((10, 30)))
        if self.profile.with_memory:
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
        constraints = self._constraints() if self.profile.with_constraints else NodeConstraints()
        cpu = rng.choice((None, None, 500, 1000, 2000))
        if self.profile.with_devices and often(rng, 0.7):
            return Shape(amounts(cpu=cpu, pods=1), constraints, (), self.gpu_ask())
        if self.profile.cards_only:
            return Shape(amounts(gpu=rng.choice((1, 1, 1, 2)), pods=1), constraints)
        cards = rng.choice((None, 1, 1, 1, 1, 2, 2, 2, 3, 4, 9))
        requests = amounts(cpu=cpu, gpu=cards, pods=1)
        charges: tuple[tuple[str, Amounts], ...] = ()
        if self.profile.with_memory and cards:
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
            rng.choice(self.quotas.named) if often(rng, 0.7) else None,
            rng.choice((None, None, 10)),
            created,
            (("w", 1),) if often(rng, 0.1) else (),
        )

    def pod(self, uid: str, created: int) -> Pod:
        """A pod that is in no gang."""
        rng = self.rng
        namespace, named = self.quotas.namespace(), rng.choice(self.quotas.named)
        gated = 0.3 if self.profile.policy == "hierarchy" and created < 6 else 0.03
        if self.quotas.borrower is not None and often(rng, 0.8 if created < 3 else 0.1):
            namespace, named = self.quotas.borrower
            gated = 0.0
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
            gated=often(rng, gated),
            preempts=not often(rng, 0.05),
            preemptible=not often(rng, 0.06),
            labels=(("app", rng.choice("uvw")),) if often(rng, 0.5) else (),
        )

    def budget(self, namespace: str, app: str) -> Budget:
        """A disruption budget of the pods of an app."""
        allowed = self.rng.choice((0, 0, 1, 2))
        return Budget(namespace, f"budget-{app}", allowed, (Requirement("app", "In", (app,)),))
