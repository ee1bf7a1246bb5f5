"""A claim: what is started as a whole. One pod, or the pods of a gang that start together.

Its uid is that of its first pod, whose place it has in the order of importance.
"""

from collections.abc import Iterator

from aliquot.engine.books.ledger import Ledger
from aliquot.engine.books.quota_tree import QuotaTree
from aliquot.engine.columns import Vector
from aliquot.engine.model.importance import ImportanceKey, importance
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.system_namespaces import CRITICAL_PRIORITY, SystemNamespaces
from aliquot.engine.placement.ask import Ask
from aliquot.engine.placement.best_node import Placement

Pods = tuple[Pod, ...]
Asks = tuple[Ask, ...]


class Claim:
    """Pods that start together or not at all, and the quota they belong to.

    The claim of a gang's core has the gang's further pending pods as `others`: one of them can
    replace a pod of the core that no node has room for. `missing` is how many pods the core lacks.
    Once the core runs, each further pod is a claim of its own, as `surplus`. `held` says that
    capacity is held for it. If its pods belong to several quotas, the claim has `parts`, one for
    each quota.
    """

    __slots__ = (
        "asks",
        "held",
        "key",
        "missing",
        "others",
        "parts",
        "pods",
        "priority",
        "quota",
        "surplus",
        "uid",
    )

    def __init__(
        self,
        pods: Pods,
        asks: Asks,
        quota: str | None,
        held: bool = False,
        others: Pods = (),
        missing: int = 0,
        surplus: bool = False,
    ) -> None:
        self.pods = pods
        self.asks = asks
        self.quota = quota
        self.held = held
        self.others = others
        self.missing = missing
        self.surplus = surplus
        self.parts: tuple[Claim, ...] = ()
        self.uid = pods[0].uid
        self.priority = max(pod.priority for pod in pods)
        self.key: ImportanceKey = importance(pods[0])

    def uids(self) -> tuple[str, ...]:
        """The uids of its pods."""
        return tuple(pod.uid for pod in self.pods)

    @property
    def members(self) -> Pods:
        """Its pods and `others`."""
        return self.pods + self.others if self.others else self.pods

    @property
    def gang(self) -> str | None:
        """The gang of its pods, if any."""
        return self.pods[0].gang

    @property
    def size(self) -> int:
        """How many pods it has."""
        return len(self.pods)

    @property
    def preempts(self) -> bool:
        """May pods be evicted for it?"""
        return all(pod.preempts for pod in self.pods)

    @property
    def preemptible(self) -> bool:
        """May each of its pods be evicted later?"""
        return all(pod.preemptible for pod in self.pods)

    def is_critical(self, system: SystemNamespaces) -> bool:
        """Is it a critical claim of the system? A gang is of one namespace: its first pod tells."""
        return system.is_critical(self.pods[0].namespace, self.priority)

    @property
    def kind(self) -> tuple[object, ...]:
        """Claims of one kind differ only in age and name: a refusal of one holds for all.

        They state the same ends, as one that ends soon may backfill. A claim for which capacity is
        held is a kind of its own; so is one with `others`, which can start in several ways, one
        with pods missing, and one with parts, which other quotas judge. What the namespace decides
        tells them apart where it matters: whether the quota that is named is open, and whether a
        priority is system-critical.
        """
        first = self.pods[0]
        preemption = self.preempts, self.preemptible
        missing_quota = (first.quota, first.namespace) if first.quota != self.quota else None
        blocked = first.gated, first.terminating, first.unsupported
        state = *blocked, first.nominated, missing_quota
        gpu_quota = first.namespace if first.shape.gpu is not None else None
        is_alone = self.held or self.others or self.missing or self.parts
        alone = self.uid if is_alone else None
        runs = tuple(pod.expected_duration for pod in self.pods)
        system = first.namespace if self.priority >= CRITICAL_PRIORITY else None
        right = self.quota, self.priority, system
        return (*right, self.asks, preemption, state, gpu_quota, runs, alone)

    def is_like(self, other: "Claim") -> bool:
        """Are both claims of the same pods, in the same state?"""
        return self._fields() == other._fields()

    def _fields(self) -> tuple[object, ...]:
        quotas = self.quota, tuple(part.quota for part in self.parts)
        return self.pods, self.others, quotas, self.held, self.missing, self.surplus

    def is_charged_by_class(self) -> bool:
        """Does what its quotas are charged depend on the class of its nodes?

        Not without a quota: then its pods may run on nodes of several classes.
        """
        has_quota = self.quota is not None or bool(self.parts)
        return has_quota and any(ask.by_class for ask in self.asks)

    def charge(self, node_class: str | None) -> Vector:
        """What its quota is charged for all its pods on nodes of this class; None while pending."""
        if len(self.asks) == 1:
            return self.asks[0].charge(node_class)
        total: dict[int, int] = {}
        for ask in self.asks:
            for row, amount in ask.charge(node_class):
                total[row] = total.get(row, 0) + amount
        return tuple(total.items())


class Claims:
    """Makes claims of pods: with their asks and their quota, and whether room is held for them."""

    def __init__(self, tree: QuotaTree, ledger: Ledger, placement: Placement) -> None:
        self._tree = tree
        self._ledger = ledger
        self._placement = placement

    def of(self, pods: Pods, others: Pods = (), missing: int = 0, surplus: bool = False) -> Claim:
        """The claim of these pods."""
        asks = tuple(self._placement.ask(pod) for pod in pods)
        held = any(pod.uid in self._ledger.holding for pod in pods)
        claim = Claim(pods, asks, self._tree.quota_of(pods[0]), held, others, missing, surplus)
        if len(pods) > 1 and any(self._tree.quota_of(pod) != claim.quota for pod in pods):
            claim.parts = tuple(self._parts(pods))
        return claim

    def _parts(self, pods: Pods) -> Iterator[Claim]:
        """One claim for each quota that the pods belong to."""
        quotas = dict.fromkeys(self._tree.quota_of(pod) for pod in pods)
        for quota in quotas:
            yield self.of(tuple(pod for pod in pods if self._tree.quota_of(pod) == quota))
