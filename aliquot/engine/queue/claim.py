"""A claim: what is started as a whole. One pod, or the pods of a gang that start together.

Its uid is that of its first pod, whose place it has in the order of importance.
"""

from collections.abc import Iterator, Sequence

from aliquot.engine.books.gangs import Gangs
from aliquot.engine.books.ledger import Ledger, Stage
from aliquot.engine.books.quota_tree import QuotaTree
from aliquot.engine.columns import Vector
from aliquot.engine.model.gang import Topology
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
    capacity is held for it. If its pods belong to several quotas or namespaces, the claim has
    `parts`, one for each.
    `topology` is how near to each other the pods of its gang run, if that matters;
    `joins` says that other pods of the gang are placed already, near which these must run.
    """

    __slots__ = (
        "asks",
        "fingerprint",
        "held",
        "joins",
        "key",
        "lane",
        "missing",
        "others",
        "parts",
        "pods",
        "priority",
        "quota",
        "surplus",
        "topology",
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
        self.topology: Topology | None = None
        self.joins = False
        self.fingerprint = 0
        """That of its pods while it waits; see `repeat_guard`."""
        self.lane: object = None
        """The lane in which it waits."""
        self.uid = pods[0].uid
        self.priority = pods[0].priority
        if len(pods) > 1:
            self.priority = max(pod.priority for pod in pods)
        self.key: ImportanceKey = importance(pods[0])

    def in_order(self, places: Sequence[int]) -> "Claim":
        """The same claim with its pods in another order."""
        pods = tuple(self.pods[place] for place in places)
        asks = tuple(self.asks[place] for place in places)
        state = self.held, self.others, self.missing, self.surplus
        found = Claim(pods, asks, self.quota, *state)
        found.parts, found.topology, found.joins = self.parts, self.topology, self.joins
        found.uid, found.key = self.uid, self.key
        return found

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
        pods = self.pods
        return pods[0].preempts if len(pods) == 1 else all(pod.preempts for pod in pods)

    @property
    def preemptible(self) -> bool:
        """May each of its pods be evicted later?"""
        pods = self.pods
        return pods[0].preemptible if len(pods) == 1 else all(pod.preemptible for pod in pods)

    def is_critical(self, system: SystemNamespaces) -> bool:
        """Is it a critical claim of the system? Of one in several namespaces, each part must be."""
        if self.parts:
            return all(part.is_critical(system) for part in self.parts)
        return system.is_critical(self.pods[0].namespace, self.priority)

    @property
    def kind(self) -> tuple[object, ...]:
        """Claims of one kind differ only in age and name: a refusal of one holds for all.

        They state the same ends, as one that ends soon may backfill. A claim for which capacity is
        held is a kind of its own; so is one with `others`, which can start in several ways, one
        with pods missing, one with parts, which other quotas judge, and one whose pods join others
        of their gang in a domain. What the namespace decides
        tells them apart where it matters: whether the quota that is named is open, and whether a
        priority is system-critical.
        """
        first = self.pods[0]
        preemption = self.preempts, self.preemptible
        missing_quota = (first.quota, first.namespace) if first.quota != self.quota else None
        blocked = first.gated, first.terminating, first.unsupported
        state = *blocked, first.nominated, missing_quota
        gpu_quota = first.namespace if first.shape.gpu is not None else None
        is_alone = self.held or self.others or self.missing or self.parts or self.joins
        alone = self.uid if is_alone else None
        runs = tuple([pod.expected_duration for pod in self.pods])
        system = first.namespace if self.priority >= CRITICAL_PRIORITY else None
        right = self.quota, self.priority, system
        near = self.topology
        return (*right, self.asks, preemption, state, gpu_quota, runs, near, alone)

    def is_like(self, other: "Claim") -> bool:
        """Are both claims of the same pods, in the same state, and by the same rules?"""
        return self._fields() == other._fields()

    def _fields(self) -> tuple[object, ...]:
        quotas = self.quota, tuple(part.quota for part in self.parts)
        state = self.held, self.missing, self.surplus, self.topology, self.joins
        return self.pods, self.asks, self.others, quotas, *state

    @property
    def has_rules(self) -> bool:
        """Do rules about other pods, ports or volumes decide where one of its pods starts?"""
        return any(ask.rule_set is not None for ask in self.asks)

    def is_charged_by_class(self) -> bool:
        """Does what its quotas are charged depend on the class of its nodes?

        Not without a quota: then its pods may run on nodes of several classes.
        """
        has_quota = self.quota is not None or bool(self.parts)
        return has_quota and any(ask.by_class for ask in self.asks)

    def charge(self, node_class: str | None) -> Vector:
        """What its quota is charged for all its pods on nodes of this class; None while pending."""
        if len(self.asks) == 1:
            ask = self.asks[0]
            return ask.plain.pending if node_class is None else ask.charge(node_class)
        total: dict[int, int] = {}
        for ask in self.asks:
            for row, amount in ask.charge(node_class):
                total[row] = total.get(row, 0) + amount
        return tuple(total.items())


class Claims:
    """Makes claims of pods: with their asks and their quota, and whether room is held for them."""

    def __init__(self, tree: QuotaTree, ledger: Ledger, placement: Placement, gangs: Gangs) -> None:
        self._tree = tree
        self._gangs = gangs
        self._ledger = ledger
        self._placement = placement

    def of(self, pods: Pods, others: Pods = (), missing: int = 0, surplus: bool = False) -> Claim:
        """The claim of these pods."""
        asks, holding = tuple(map(self._placement.ask, pods)), self._ledger.holding
        held = bool(holding) and any(pod.uid in holding for pod in pods)
        claim = Claim(pods, asks, self._tree.quota_of(pods[0]), held, others, missing, surplus)
        if len(pods) > 1 and any(self._judge(pod) != self._judge(pods[0]) for pod in pods):
            claim.parts = tuple(self._parts(pods))
        if self._gangs.topologies:
            claim.topology = self._gangs.topologies.get(str(pods[0].gang))
            claim.joins = claim.topology is not None and self._joins(claim)
        return claim

    def _judge(self, pod: Pod) -> tuple[str | None, str]:
        """The quota and the namespace whose rules judge the pod."""
        return self._tree.quota_of(pod), pod.namespace

    def _joins(self, claim: Claim) -> bool:
        """Are pods of its gang placed that are not the claim's?"""
        entries, own = self._ledger.entries, {pod.uid for pod in claim.members}
        found = (
            entries.get(uid)
            for uid in self._gangs.members.get(str(claim.gang), ())
            if uid not in own
        )
        return any(entry is not None and entry.stage >= Stage.ASSUMED for entry in found)

    def _parts(self, pods: Pods) -> Iterator[Claim]:
        """One claim for each quota that the pods belong to, in each namespace."""
        for judge in dict.fromkeys(map(self._judge, pods)):
            yield self.of(tuple(pod for pod in pods if self._judge(pod) == judge))
