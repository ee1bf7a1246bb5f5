"""The mirror: objects of a cluster in, the engine's events out.

The control plane or the simulation puts objects into the store and names those that have changed.
The mirror works out what that changes in quotas, namespace weights (`Weights`), gangs, devices,
budgets and the pods that belong to them, and sends only the differences. It creates no pods and
ends none: that is up to the cluster.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from aliquot.dialects.core import nodes
from aliquot.dialects.core.manifest import Key, Manifest
from aliquot.dialects.core.storage import volumes
from aliquot.dialects.kep9 import quotas
from aliquot.dialects.koordinator import profiles
from aliquot.dialects.nos.cards import Cards
from aliquot.dialects.quota_index import QuotaIndex, Special, build
from aliquot.dialects.volcano import queues
from aliquot.dialects.volcano.namespace_weights import weights
from aliquot.engine import (
    BudgetGone,
    BudgetSet,
    DefaultConstraint,
    DeviceSet,
    Event,
    GangSet,
    GpuQuotaSet,
    Node,
    NodeGone,
    NodeSet,
    Pod,
    PodGone,
    PodSet,
    QuotaGone,
    QuotaSet,
    StorageGone,
    StorageSet,
    SystemNamespaces,
    TreeGone,
    TreeSet,
    WeightSet,
    storage_key,
)
from aliquot.mirror.budget_counts import BudgetCounts
from aliquot.mirror.default_spread import OWNERS, SERVICE, DefaultSpread
from aliquot.mirror.dependents import Dependents
from aliquot.mirror.devices import Devices
from aliquot.mirror.gangs import Gangs
from aliquot.mirror.gpu_quotas import GPU_QUOTA_KINDS, GpuQuotas
from aliquot.mirror.group_membership import queue_of
from aliquot.mirror.namespaces import Namespaces
from aliquot.mirror.node_images import NodeImages
from aliquot.mirror.pod_record import Phase, PodRecord
from aliquot.mirror.store import Store
from aliquot.mirror.topology import TopologyDemands

_QUOTA_KINDS = {*quotas.KINDS, queues.KIND, profiles.KIND, "Namespace"}


WEIGHT_KINDS = {"ResourceQuota", "Namespace"}
"""The kinds whose changes can change the weights of namespaces."""


class Weights:
    """Volcano's weights of namespaces that were last sent to the engine, where they are not 1."""

    def __init__(self, send: Callable[[Event], None]) -> None:
        self.sent: dict[str, int] = {}
        self._send = send

    def refresh(self, objects: Iterable[Manifest]) -> None:
        """Send the weights that differ from the last ones sent."""
        before, self.sent = self.sent, weights(objects)
        for namespace in sorted({*before, *self.sent}):
            weight = self.sent.get(namespace, 1)
            if weight != before.get(namespace, 1):
                self._send(WeightSet(namespace, weight))


class Mirror:
    """Objects and pods of a cluster; what changes for the engine goes to `send` as events."""

    def __init__(
        self,
        send: Callable[[Event], None],
        cards: Cards,
        special: Special = "",
        live: bool = False,
        system: SystemNamespaces | None = None,
        default_constraints: tuple[DefaultConstraint, ...] = (),
        topology: tuple[str, ...] = (),
    ) -> None:
        """`live`: the objects are those of a running cluster.

        Then their timestamps are on the clock that cycles are told, and statuses of GPUs are
        written by us, and say nothing of other pods. `topology`: labels of nodes by which they are
        near each other, from narrow to wide.
        """
        self.store = Store()
        self.quota_index = QuotaIndex()
        """The quotas that were last sent to the engine."""
        self.records: dict[str, PodRecord] = {}
        """Every known pod by uid, also those that have ended."""
        self.cards = cards
        self.topology = TopologyDemands(topology, send)
        self.gangs = Gangs(self.store, send, self.topology)
        self.devices = Devices(self.store, send, cards, live)
        self.gpu_quotas = GpuQuotas(send)
        self._namespaces = Namespaces(send)
        self._weights = Weights(send)
        self._default_spread = DefaultSpread(default_constraints) if default_constraints else None
        self._node_images = NodeImages(send)
        self._dependents = Dependents(owners=bool(default_constraints))
        self._budget_counts = BudgetCounts()
        self._special = special
        self.pools = profiles.Pools()
        """What the nodes of every profile have, as the quotas were last worked out."""
        self._system = system or SystemNamespaces()
        self._live = live
        self._send = send
        self._refresh_quotas()

    def refresh(self, changed: Collection[Key], age: Callable[[Manifest], int]) -> None:
        """Send what a change of these objects changes, in known pods as well.

        New pods and budgets are sent apart (`send_pod`, `send_budget`). `age` gives the age of a
        PodGroup.
        """
        touched = set(changed)
        kinds = {kind for kind, _, _ in touched}
        if profiles.KIND in kinds:
            self.pools.rebuild(self.store.objects.values())
        differ = self._pools_differ(changed)
        if differ or kinds & _QUOTA_KINDS:
            self._refresh_quotas()
        if "Namespace" in kinds:
            self._namespaces.refresh(changed, self.store.objects)
        if kinds & WEIGHT_KINDS:
            self._weights.refresh(self.store.objects.values())
        if kinds & GPU_QUOTA_KINDS:
            self.gpu_quotas.refresh(self.store.objects.values())
        self._refresh_default_spread(changed)
        moved = self.topology.refresh(kinds, self.store.objects.values())
        groups = self.gangs.refresh(touched, bool(self.quota_index.queues), age)
        self.refresh_pods(self._dependents.of(sorted(touched | groups)))
        self._refresh_nodes(dict.fromkeys((*changed, *moved)))
        self._refresh_storage(changed)
        self.devices.refresh(touched, self.records.values(), self.gpu_quotas.defaults)

    def _pools_differ(self, changed: Iterable[Key]) -> bool:
        """Do the nodes among these objects change what some profile's nodes have?"""
        if not self.pools:
            return False
        nodes = [each for each in changed if each[0] == "Node"]
        differing = [each for each in nodes if self.pools.put(each, self.store.objects.get(each))]
        return bool(differing)

    def _refresh_quotas(self) -> None:
        """Send the trees and quotas that differ, parents first, and the pods that name them."""
        before, self.quota_index = (
            self.quota_index,
            build(
                *(self.store.objects.values(), self._special, self._system, self.pools),
                models=self.cards.models,
            ),
        )
        for tree in self.quota_index.trees.values():
            if before.trees.get(tree.name) != tree:
                self._send(TreeSet(tree))
        for name in before.trees:
            if name not in self.quota_index.trees:
                self._send(TreeGone(name))
        for name, quota in self.quota_index.quotas.items():
            if before.quotas.get(name) != quota:
                self._send(QuotaSet(quota))
        for name in reversed(before.quotas):
            if name not in self.quota_index.quotas:
                self._send(QuotaGone(name))
        for name, uids in self._dependents.by_quota_name.items():
            if before.openness(name) != self.quota_index.openness(name):
                self.refresh_pods(uids)
        if bool(before.queues) != bool(self.quota_index.queues):
            self.refresh_pods(self.records)

    def _refresh_default_spread(self, changed: Iterable[Key]) -> None:
        """Send the pods whose spread differs by a change of Services or of their owners."""
        spread = self._default_spread
        if spread is None:
            return
        objects = self.store.objects
        selecting = [each for each in changed if each[0] == SERVICE or each[0] in OWNERS]
        differing = [each for each in selecting if spread.put(each, objects.get(each))]
        self.refresh_pods(
            self._dependents.of(
                ("Namespace", "", each[1]) if each[0] == SERVICE else each for each in differing
            )
        )

    def _refresh_nodes(self, changed: Iterable[Key]) -> None:
        for key in changed:
            if key[0] == "Node" and key in self.store.objects:
                manifest = self.store.objects[key]
                self._send(NodeSet(self._node(manifest)))
                self._node_images.refresh(manifest)

    def _node(self, manifest: Manifest) -> Node:
        """A node with the domains that it is in."""
        return self.topology.located(nodes.node(manifest, self.cards, self._live))

    def _refresh_storage(self, changed: Iterable[Key]) -> None:
        for key in changed:
            if key[0] in volumes.KINDS and key in self.store.objects:
                found = volumes.storage_object(self.store.objects[key])
                if found is not None:
                    self._send(StorageSet(found))

    def refresh_pods(self, uids: Iterable[str]) -> None:
        """Send those of these pods whose quota, gang, priority or spread differs now."""
        for uid in list(uids):
            record = self.records[uid]
            pod = self.resolve_pod(record)
            if pod != record.pod:
                record.pod = pod
                if record.alive:
                    self._send(PodSet(pod))

    def resolve_pod(self, record: PodRecord) -> Pod:
        """A pod with what follows from other objects now: its quota, its gang, default spread.

        It has at least its gang's priority, and may be evicted only if the gang may.
        """
        if record.nearness is not None:
            asks = self.topology.note(record)
            if asks is not None:
                self.gangs.renew_topology(asks)
        pod, objects = record.pod, self.store.objects
        if self._default_spread is not None:
            rules = self._default_spread.rules(record)
            if rules is not pod.rules and rules != pod.rules:
                pod = replace(pod, rules=rules)
        if record.group_ref.declared is not None and record.alive:
            self.gangs.declare(record)
        queue = queue_of(record.group_ref, pod.namespace, objects)
        quota = self.quota_index.find_quota(record.named_quota, pod.namespace, queue)
        gang = self.gangs.sent.get(self.gangs.of_record(record) or "")
        if gang is not None and record.group_ref.job is not None and gang.quota is not None:
            quota = self.quota_index.find_quota(record.named_quota, pod.namespace, gang.quota)
        if gang is None:
            made = self.topology.gang_made_for(record)
            own = record.priority, record.preemptible
            if (pod.quota, pod.gang, pod.priority, pod.preemptible) == (quota, made, *own):
                return pod  # as for most pods: a copy would be a tenth of the time to read a pod
            priority, preemptible, name = *own, made
        else:
            least = record.priority if gang.priority is None else gang.priority
            priority = max(record.priority, least)
            preemptible, name = record.preemptible and gang.preemptible, gang.name
        return replace(pod, quota=quota, gang=name, priority=priority, preemptible=preemptible)

    def add(self, record: PodRecord) -> None:
        """Add or replace a pod, without sending it."""
        self.track(record)
        self.records[record.pod.uid] = record

    def track(self, record: PodRecord) -> None:
        """Refresh a pod from now on whenever an object changes that it depends on now."""
        self._dependents.add(record, self.records.get(record.pod.uid))

    def send_pod(self, record: PodRecord) -> None:
        """Send a pod that waits or runs."""
        self._budget_counts.note(record)
        self._namespaces.ensure(record.pod.namespace)
        self._send(PodSet(record.pod))

    def end(self, record: PodRecord, phase: Phase) -> None:
        """A pod has ended in this phase: it holds no resources any more."""
        record.phase = phase
        self._budget_counts.note(record)
        self._send(PodGone(record.pod.uid))
        self.topology.forget(record.pod.uid)
        self.gangs.note_phase(record, phase)

    def forget(self, uid: str) -> None:
        """A pod's object is deleted: remove its record as well."""
        record = self.records.pop(uid)
        self._budget_counts.forget(uid)
        if record.alive:
            self._send(PodGone(uid))
        self.topology.forget(uid)
        self.gangs.note_phase(record, "Deleted")
        self._dependents.remove(record)

    def replay(self, send: Callable[[Event], None]) -> None:
        """Send everything to a new engine, as if all objects had come just now."""
        self._namespaces.replay(send)
        for tree in self.quota_index.trees.values():
            send(TreeSet(tree))
        for quota in self.quota_index.quotas.values():
            send(QuotaSet(quota))
        for namespace, weight in self._weights.sent.items():
            send(WeightSet(namespace, weight))
        for gpu_quota in self.gpu_quotas.sent.values():
            send(GpuQuotaSet(gpu_quota))
        for gang in (*self.gangs.sent.values(), *self.topology.made.values()):
            send(GangSet(gang))
        for manifest in self.store.objects.values():
            if manifest.kind == "Node":
                send(NodeSet(self._node(manifest)))
        self._node_images.replay(send)
        for manifest in self.store.objects.values():
            found = volumes.storage_object(manifest)
            if found is not None:
                send(StorageSet(found))
        for device in self.devices.sent.values():
            send(DeviceSet(device))
        for record in self.records.values():
            if record.alive:
                send(PodSet(record.pod))
        for manifest in self.store.objects.values():
            if manifest.kind == "PodDisruptionBudget":
                send(BudgetSet(self._budget_counts.budget(manifest)))

    def refresh_budgets(self) -> None:
        """Send what budgets without a status allow now, as the disruption controller would."""
        for manifest in self._budget_counts.changed():
            self._send(BudgetSet(self._budget_counts.budget(manifest)))

    def send_budget(self, manifest: Manifest) -> None:
        """Send what a new or changed budget allows."""
        self._budget_counts.set(manifest)
        self._send(BudgetSet(self._budget_counts.budget(manifest)))

    def send_removal(self, manifest: Manifest) -> None:
        """Send what follows from the deletion of a node, a budget, a volume, a Service..."""
        self._refresh_default_spread([manifest.key])
        found = volumes.storage_object(manifest)
        if found is not None:
            self._send(StorageGone(*storage_key(found)))
        match manifest.kind:
            case "Node":
                if self.pools and self.pools.put(manifest.key, None):
                    self._refresh_quotas()
                self._node_images.forget(manifest.name)
                self._send(NodeGone(manifest.name))
            case "PodDisruptionBudget":
                self._budget_counts.remove(manifest.key)
                self._send(BudgetGone(f"{manifest.namespace}/{manifest.name}"))
