"""The objects of a cluster as they stand, and all that follows from them, told to the engine.

Who keeps a cluster, real or embedded, puts objects into the store and says which have changed; what
that means for quotas, gangs, weights, devices, budgets and the pods that belong to them is found
out here, and told as events. It makes no pods and ends none: that is for the cluster to do.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from aliquot.dialects.core import budgets, nodes
from aliquot.dialects.core.manifest import Key, Manifest
from aliquot.dialects.kep9 import quotas
from aliquot.dialects.nos.cards import Cards
from aliquot.dialects.quota_index import QuotaIndex, Special, build
from aliquot.dialects.volcano import queues
from aliquot.dialects.volcano.namespace_weights import weights
from aliquot.engine import (
    Budget,
    BudgetGone,
    BudgetSet,
    DeviceSet,
    Event,
    GangSet,
    GpuQuotaSet,
    NodeGone,
    NodeSet,
    Pod,
    PodGone,
    PodSet,
    QuotaGone,
    QuotaSet,
    WeightSet,
)
from aliquot.mirror.dependents import Dependents
from aliquot.mirror.devices import Devices
from aliquot.mirror.gangs import Gangs
from aliquot.mirror.gpu_quotas import BEAR_ON_GPU_QUOTAS, GpuQuotas
from aliquot.mirror.group_membership import queue_of
from aliquot.mirror.pod_record import Phase, PodRecord
from aliquot.mirror.store import Store

_BEAR_ON_QUOTAS = {*quotas.KINDS, queues.KIND, "Namespace"}


class Mirror:
    """Objects and pods. What changes is told to `tell`."""

    def __init__(
        self,
        tell: Callable[[Event], None],
        cards: Cards,
        special: Special = "",
        written_here: bool = False,
    ) -> None:
        """`written_here`: statuses are our own word coming back."""
        self.store = Store()
        self.quota_index = QuotaIndex()
        """The quotas as they were last told, with what they mean to each other."""
        self.records: dict[str, PodRecord] = {}
        """Every pod that is known, by uid."""
        self.cards = cards
        self.gangs = Gangs(self.store, tell)
        self.devices = Devices(self.store, tell, cards, written_here)
        self.gpu_quotas = GpuQuotas(tell)
        self._weights = Weights(tell)
        self._dependents = Dependents()
        self._special = special
        self._tell = tell
        self._restate_quotas()

    def restate(self, changed: Collection[Key], age: Callable[[Manifest], int]) -> None:
        """Tell what follows from these objects not being what they were; pods are told apart.

        `age` says how old a group of pods is.
        """
        touched = set(changed)
        kinds = {kind for kind, _, _ in touched}
        if kinds & _BEAR_ON_QUOTAS:
            self._restate_quotas()
        if kinds & BEAR_ON_WEIGHTS:
            self._weights.restate(self.store.objects.values())
        if kinds & BEAR_ON_GPU_QUOTAS:
            self.gpu_quotas.restate(self.store.objects.values())
        groups = self.gangs.restate(touched, bool(self.quota_index.queues), age)
        self.restate_pods(self._dependents.of(touched | groups))
        self._restate_nodes(changed)
        self.devices.restate(touched, self.records.values(), self.gpu_quotas.defaults)

    def _restate_quotas(self) -> None:
        """Tell what has become of the quotas, parents first, and of the pods that name them."""
        before, self.quota_index = (
            self.quota_index,
            build(self.store.objects.values(), self._special),
        )
        for name, quota in self.quota_index.quotas.items():
            if before.quotas.get(name) != quota:
                self._tell(QuotaSet(quota))
        for name in reversed(before.quotas):
            if name not in self.quota_index.quotas:
                self._tell(QuotaGone(name))
        for name, uids in self._dependents.asking.items():
            if before.names.get(name) != self.quota_index.names.get(name):
                self.restate_pods(uids)
        if bool(before.queues) != bool(self.quota_index.queues):
            self.restate_pods(self.records)

    def _restate_nodes(self, changed: Iterable[Key]) -> None:
        for key in changed:
            if key[0] == "Node" and key in self.store.objects:
                self._tell(NodeSet(nodes.node(self.store.objects[key], self.cards)))

    def restate_pods(self, uids: Iterable[str]) -> None:
        """Where these pods belong may be another quota now, or another gang."""
        for uid in list(uids):
            record = self.records[uid]
            pod = self.where_it_belongs(record)
            if pod != record.pod:
                record.pod = pod
                if record.alive:
                    self._tell(PodSet(pod))

    def where_it_belongs(self, record: PodRecord) -> Pod:
        """A pod in its quota and in its gang, as things are; with at least the gang's priority."""
        pod, objects = record.pod, self.store.objects
        queue = queue_of(record.group_ref, pod.namespace, objects)
        quota = self.quota_index.find_quota(record.asks_for, pod.namespace, record.priority, queue)
        gang = self.gangs.told.get(f"{pod.namespace}/{record.group_ref.gang}")
        if gang is None:
            if (pod.quota, pod.gang, pod.priority) == (quota, None, record.priority):
                return pod  # as most are: a copy of each would be a tenth of reading it
            return replace(pod, quota=quota, gang=None, priority=record.priority)
        whole = record.priority if gang.priority is None else gang.priority
        return replace(pod, quota=quota, gang=gang.name, priority=max(record.priority, whole))

    def keep(self, record: PodRecord) -> None:
        """Know a pod from now on, as it is; the engine is told apart."""
        self.depend(record)
        self.records[record.pod.uid] = record

    def depend(self, record: PodRecord) -> None:
        """Look at a pod again when what it depends on now changes."""
        self._dependents.note(record, self.records.get(record.pod.uid))

    def tell(self, record: PodRecord) -> None:
        """Tell the engine of a pod that is there."""
        self._tell(PodSet(record.pod))

    def end(self, record: PodRecord, phase: Phase) -> None:
        """A pod has ended like this, and holds nothing any more."""
        record.phase = phase
        self._tell(PodGone(record.pod.uid))
        self.gangs.note(record, phase)

    def forget(self, uid: str) -> None:
        """A pod is no longer there at all, not even as one that has ended."""
        record = self.records.pop(uid)
        if record.alive:
            self._tell(PodGone(uid))
        self.gangs.note(record, "Deleted")
        self._dependents.forget(record)

    def replay(self, tell: Callable[[Event], None]) -> None:
        """Tell somebody new all that the objects say, as if they had come just now."""
        for quota in self.quota_index.quotas.values():
            tell(QuotaSet(quota))
        for namespace, weight in self._weights.told.items():
            tell(WeightSet(namespace, weight))
        for gpu_quota in self.gpu_quotas.told.values():
            tell(GpuQuotaSet(gpu_quota))
        for gang in self.gangs.told.values():
            tell(GangSet(gang))
        for manifest in self.store.objects.values():
            if manifest.kind == "Node":
                tell(NodeSet(nodes.node(manifest, self.cards)))
        for device in self.devices.told.values():
            tell(DeviceSet(device))
        for record in self.records.values():
            if record.alive:
                tell(PodSet(record.pod))
        for manifest in self.store.objects.values():
            if manifest.kind == "PodDisruptionBudget":
                tell(BudgetSet(self._budget(manifest)))

    def restate_budgets(self) -> None:
        """Do what the disruption controller does: say anew what budgets allow, as pods run now."""
        for manifest in self.store.objects.values():
            if manifest.kind == "PodDisruptionBudget" and not budgets.has_status(manifest):
                self.state_budget(manifest)

    def state_budget(self, manifest: Manifest) -> None:
        """Tell what a budget allows."""
        self._tell(BudgetSet(self._budget(manifest)))

    def _budget(self, manifest: Manifest) -> Budget:
        if budgets.has_status(manifest):
            return budgets.budget(manifest)
        running, waiting = (
            [record.pod for record in self.records.values() if record.phase == phase]
            for phase in ("Running", "Pending")
        )
        return budgets.budget(manifest, running, waiting)

    def drop(self, manifest: Manifest) -> None:
        """An object is no longer there, and was told apart."""
        match manifest.kind:
            case "Node":
                self._tell(NodeGone(manifest.name))
            case "PodDisruptionBudget":
                self._tell(BudgetGone(f"{manifest.namespace}/{manifest.name}"))


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
