"""The state of the engine: all books together, and every pod in them.

A pod waits, is held room for, runs or leaves; this module books it as what it is. How events of
nodes, quotas, gangs and devices change the books is in `updates`. No decision is taken here.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from aliquot.engine.books.bound_pods import BoundPods
from aliquot.engine.books.budgets import Budgets
from aliquot.engine.books.capacity import Capacity
from aliquot.engine.books.changes import Changes, NewlyBound
from aliquot.engine.books.gang_requests import GangRequests
from aliquot.engine.books.gangs import Gangs
from aliquot.engine.books.lasting import LastingTally
from aliquot.engine.books.leaving import Leaving
from aliquot.engine.books.ledger import Booking, Entry, Ledger, Speculation, Stage
from aliquot.engine.books.model_mins import ModelMins
from aliquot.engine.books.node_images import NodeImages
from aliquot.engine.books.nodes import Nodes
from aliquot.engine.books.quota_tree import QuotaTree
from aliquot.engine.books.repeat_guard import RepeatGuard, fingerprint
from aliquot.engine.books.stranded import StrandedPods
from aliquot.engine.books.tree_capacity import TreeCapacity
from aliquot.engine.books.volumes import Volumes
from aliquot.engine.columns import Resources
from aliquot.engine.gpus.accounts import GpuLeaving, GpuTally
from aliquot.engine.gpus.devices import Devices
from aliquot.engine.gpus.quotas import GpuQuotas
from aliquot.engine.model.importance import IMPORTANCE, Order
from aliquot.engine.model.knobs import Knobs
from aliquot.engine.model.pod import Pod
from aliquot.engine.placement.best_node import Placement
from aliquot.engine.placement.bookings import Bookings
from aliquot.engine.placement.fragmentation.mix import Mix
from aliquot.engine.queue.claim import Claim, Claims
from aliquot.engine.queue.waiting import Waiting


class State:
    """Nodes, quotas, gangs, devices and pods; the ledger; the waiting claims."""

    def __init__(
        self,
        knobs: Knobs,
        order: Order = IMPORTANCE,
        spares_system: bool = False,
    ) -> None:
        self.knobs = knobs
        self.changes = Changes()
        self.resources = Resources()
        self.tree = QuotaTree(self.resources)
        self.nodes = Nodes(self.resources)
        self.ledger = Ledger(self.resources, self.tree, self.nodes.slots, self.changes)
        self.capacity = Capacity(self.resources, self.nodes, self.ledger)
        self.tree_capacity = TreeCapacity(
            self.resources, self.nodes, self.ledger, self.tree, self.capacity
        )
        self.model_mins = ModelMins(
            *(self.resources, self.tree, self.ledger, self.capacity, self.changes)
        )
        self.devices = Devices(self.nodes, knobs.gpu.placement)
        self.gpu_quotas = GpuQuotas()
        self.ledger.tallies.append(GpuTally(self.devices, self.gpu_quotas))
        self.lasting = LastingTally()
        self.ledger.tallies.append(self.lasting)
        self.volumes = Volumes(self.changes)
        self.node_images = NodeImages()
        self.mix = Mix() if knobs.gpu.placement == "leastFragmentation" else None
        self.placement = Placement(
            *(self.resources, self.nodes, self.tree, self.ledger, self.devices, self.changes),
            *(self.volumes, self.node_images, knobs.placement, self.mix),
        )
        self.bookings = Bookings(self.tree, self.nodes, self.ledger, self.placement, self.devices)
        self.gangs = Gangs(self.changes)
        self.claims = Claims(self.tree, self.ledger, self.placement, self.gangs)
        self.waiting = Waiting()
        self.gang_requests = GangRequests(
            self.resources, self.tree, self.ledger, self.gangs, self.changes
        )
        self.weights: dict[str, int] = {}
        """The weights of namespaces in their queues, where not 1."""
        needed = partial(knobs.system_namespaces.needs, all_of_them=spares_system)
        self.bound_pods = BoundPods(
            *(self.resources, self.tree, order, self.gangs, needed, self.devices.numbers)
        )
        """Bound pods that are not leaving: the possible victims."""
        self.budgets = Budgets(lambda name: [self.pods[uid] for uid in self.in_namespace(name)])
        self.repeat_guard = RepeatGuard(self.changes)
        self.leaving = Leaving(self.resources, self.nodes.slots, self.tree.slots)
        self.gpus_leaving = GpuLeaving(self.devices)
        self.leaving.tallies.append(self.gpus_leaving)
        self.min_splits: dict[object, object] = {}
        """Which pods of a quota are above its min, as `policies.over_quota` last worked it out."""
        self.stranded = StrandedPods()
        self.reserved: dict[str, None] = {}
        """The waiting pods whose hold is a reservation, not a nomination; see `reservation`."""
        self.departures = 0
        """How many bound pods have left so far."""
        self.pods: dict[str, Pod] = {}
        self.by_namespace: dict[str, dict[str, None]] = {}
        self.not_preemptible: dict[str, None] = {}
        """The uids of the pods that may not be evicted."""
        self.by_quota_label: dict[str, dict[str, None]] = {}
        """The uids of the pods that name a quota, by its name."""

    @contextmanager
    def speculating(self, *claims: Claim, asking: bool = False) -> Iterator[Speculation]:
        """Try bookings: at the end of the block all are taken back, unless `keep` was called.

        So is the choice of pods of these claims, where the pods of a gang may replace each other.
        `asking`: to answer a question. No book is changed by a block that is not kept, but for the
        order of entries, which is no part of the state. Shares do not move in it.
        """
        chosen = [(c, c.pods, c.others, c.asks, c.quota, c.parts) for c in claims]
        speculation = self.ledger.speculate(asking)
        try:
            yield speculation
        finally:
            self.ledger.settle(speculation)
            if not speculation.kept:
                for claim, pods, others, asks, quota, parts in chosen:
                    claim.pods, claim.others, claim.asks = pods, others, asks
                    claim.quota, claim.parts = quota, parts

    def trim_changes(self) -> None:
        """Drop changes that all readers have read; the books that follow lazily read them now."""
        self.repeat_guard.refresh()
        self.placement.refresh()
        self.model_mins.refresh()
        self.renew_pending()
        if self.placement.renew_rules(self.pods.values()):
            for uid in sorted(uid for uid in self.pods if uid in self.waiting):
                self.enqueue(self.pods[uid])
        self.changes.trim()

    def renew_pending(self) -> None:
        """Charge waiting pods anew that can run on cards of one model only, or no more."""
        changed = self.placement.renew_pending()
        for uid in sorted(self.ledger.entries) if changed else ():
            pod = self.pods.get(uid)
            waits = self.ledger.entries[uid].stage is Stage.WAITING
            if waits and pod is not None and pod.shape in changed:
                self.ledger.wait(uid, self.bookings.pending(pod))

    def in_namespace(self, namespace: str) -> Iterable[str]:
        """The uids of the pods of a namespace."""
        return self.by_namespace.get(namespace, ())

    def drop_nomination(self, uid: str) -> None:
        """Give up the room and right that are held for a pod; it goes on waiting."""
        self.reserved.pop(uid, None)
        self.ledger.wait(uid, self.bookings.pending(self.pods[uid]))
        if uid in self.waiting:
            claim = self.waiting.claim(uid)
            if claim.held and not any(each in self.ledger.holding for each in claim.uids()):
                same = claim.pods, claim.others, claim.missing, claim.surplus
                self.waiting.add(self.claims.of(*same))
                self.gangs.note_change(self.pods[uid])

    def set_pod(self, pod: Pod) -> None:
        """Book a pod that is new, or has changed."""
        old = self.pods.get(pod.uid)
        if old is not None:
            self._note_change(old, pod)
        if pod.uid in self.leaving.overdue and not self.ends_in_time(pod):
            self.leaving.overdue.remove(pod.uid)  # its deletion was called off
            self.changes.outside.append(pod.uid)
        if self.is_staying(pod):
            self.repeat_guard.present += fingerprint(pod)
        self.pods[pod.uid] = pod
        if self.mix is not None:
            self.mix.note(old, pod)
        if not pod.preemptible:
            self.not_preemptible[pod.uid] = None
        elif old is not None:
            self.not_preemptible.pop(pod.uid, None)
        self.placement.rule_sets.note(pod)
        self.gangs.join(pod)
        self.by_namespace.setdefault(pod.namespace, {})[pod.uid] = None
        self.budgets.note(pod)
        if pod.quota is not None:
            self.by_quota_label.setdefault(pod.quota, {})[pod.uid] = None
        self.book(pod)

    def _note_change(self, old: Pod, pod: Pod) -> None:
        """Take a pod that has changed out of the indices that its old version was in."""
        if old.quota is not None and old.quota != pod.quota:
            del self.by_quota_label[old.quota][pod.uid]
        if old.gang != pod.gang:
            self.gangs.leave(old)
        if self.is_staying(old):
            self.repeat_guard.present -= fingerprint(old)
        known = replace(old, node=pod.node, nominated=pod.nominated, started=pod.started)
        if old.node is None:  # a bind comes true
            known = replace(known, devices=pod.devices)
        if pod.uid in self.leaving:  # an eviction comes true: it is no news
            known = replace(known, terminating=pod.terminating, gone_by=pod.gone_by)
        if known != pod:
            self.changes.outside.append(pod.uid)

    def book(self, pod: Pod) -> None:
        """Book a pod on its node, or as waiting; an assumed pod stays assumed on its node."""
        entry = self.ledger.entries.get(pod.uid)
        if pod.node is not None:
            self.waiting.remove(pod.uid)
            self.reserved.pop(pod.uid, None)
            if self.stranded.note(pod, self.nodes.known.get(pod.node)):
                self.leaving.overdue.discard(pod.uid)
            if pod.node not in self.nodes.known and self._is_assumed_on(pod.node, entry):
                self.changes.lost.append(pod.uid)  # the node went before the bind was confirmed
            self.ledger.commit(pod.uid, self.booking_of_bound(pod, pod.node))
            self.track_bound(pod)
        elif entry is None or entry.stage is not Stage.ASSUMED:
            self.enqueue(pod)
        else:
            assert entry.booking.node is not None
            quota = self.tree.membership.of(pod.quota, pod.namespace)
            self.ledger.change(pod.uid, self.bookings.booking(pod, quota, entry.booking.node))

    def _is_assumed_on(self, node: str, entry: Entry | None) -> bool:
        return entry is not None and entry.stage is Stage.ASSUMED and entry.booking.node == node

    def booking_of_bound(self, pod: Pod, node: str) -> Booking:
        """What a bound pod is booked with; a stranded one is not charged."""
        booking = self.bookings.booking(pod, self.tree.quota_of(pod), node)
        return booking._replace(charge=()) if pod.uid in self.stranded else booking

    def lose_nodes(self, now: int) -> None:
        """Count nodes as lost by now; claims that found no victims may find some then."""
        version = self.nodes.version
        self.nodes.lose(now, self.knobs.eviction.node_lost_after)
        if self.nodes.version != version:
            self.changes.victims.append("a node is lost")

    def strand(self, now: int) -> None:
        """Stop charging pods that are past their grace period on a node that is not ready."""
        for uid in self.stranded.strand(now):
            pod = self.pods[uid]
            assert pod.node is not None
            self.leaving.mark_overdue(uid)
            self.ledger.commit(uid, self.booking_of_bound(pod, pod.node))
            self.changes.victims.append(uid)

    def track_bound(self, pod: Pod) -> None:
        """Put a bound pod among the running ones or the leaving ones."""
        going = self.ends_in_time(pod) or pod.uid in self.leaving
        before = self.bound_pods.eligibility(pod.uid)
        self._untrack_bound(pod.uid)
        if pod.uid in self.leaving.overdue:
            return
        entry = self.ledger.entries[pod.uid]
        if not going:
            self.bound_pods.set(pod, entry)
            if before != (entry.path[0], pod.priority, pod.preemptible):
                self.changes.bound.append(NewlyBound(entry.booking.quota, pod.priority))
            if self.is_above_min(entry):
                self.changes.victims.append(pod.uid)
            return
        self.leaving.add(pod.uid, entry)

    def is_above_min(self, entry: Entry) -> bool:
        """Is the pod's quota above its min, in what the pod takes of it?"""
        slot = entry.path[0]
        return any(
            self.ledger.used.get(row, slot) > self.tree.min.get(row, slot)
            for row, _ in entry.booking.charge
        )

    def _untrack_bound(self, uid: str) -> None:
        self.bound_pods.remove(uid)
        self.leaving.remove(uid)

    def evict(self, uid: str) -> None:
        """Count a bound pod as leaving: its eviction was decided."""
        if self.is_staying(self.pods[uid]):
            self.repeat_guard.present -= fingerprint(self.pods[uid])
        self.gangs.note_change(self.pods[uid])
        pod, most = self.pods[uid], self.knobs.eviction.max_grace
        capped = min(pod.grace_period, most)
        self.track_bound(replace(pod, terminating=True, grace_period=capped))

    def eviction_failed(self, uid: str) -> None:
        """An eviction was refused: the pod keeps running and is not waited for."""
        if uid in self.leaving and not self.ends_in_time(self.pods[uid]):
            self.leaving.mark_overdue(uid)
            self.note_outside_change(uid)

    def ends_in_time(self, pod: Pod) -> bool:
        """Is the pod terminating, with a grace period that claims can wait for?

        One with a longer grace period than `maxGrace` counts as running: a claim that could evict
        it still may, which shortens its grace period.
        """
        return pod.terminating and pod.grace_period <= self.knobs.eviction.max_grace

    def is_staying(self, pod: Pod) -> bool:
        """Is the pod neither terminating, nor evicted, nor overdue to leave?"""
        leaving = self.leaving
        return not (pod.terminating or pod.uid in leaving or pod.uid in leaving.overdue)

    def enqueue(self, pod: Pod) -> None:
        """Let a pod wait: in a claim of its own, or in its gang's (see `gang_claims`)."""
        may_start = not pod.blocked and self.tree.closed_to(pod) is None
        node = (pod.nominated or self._nominated_node(pod.uid)) if may_start else None
        if node is not None and node in self.nodes.known:
            self.ledger.hold(pod.uid, self.bookings.booking(pod, self.tree.quota_of(pod), node))
        else:
            self.ledger.wait(pod.uid, self.bookings.pending(pod))
        self.gangs.note_change(pod)
        if pod.blocked or self.gangs.of(pod) is None:
            self.waiting.add(self.claims.of((pod,)))

    def _nominated_node(self, uid: str) -> str | None:
        """The node nominated for a pod, whether or not the cluster shows the nomination yet."""
        entry = self.ledger.entries.get(uid)
        return entry.booking.node if entry is not None and entry.stage is Stage.HELD else None

    def drop_pod(self, uid: str) -> None:
        """Take a pod that is gone out of all books."""
        pod = self.pods.pop(uid, None)
        if pod is None:
            return
        if self.mix is not None:
            self.mix.note(pod, None)
        self.not_preemptible.pop(uid, None)
        self.gangs.leave(pod)
        del self.by_namespace[pod.namespace][uid]
        if pod.quota is not None:
            del self.by_quota_label[pod.quota][uid]
        if self.is_staying(pod):
            self.repeat_guard.present -= fingerprint(pod)
            self.changes.outside.append(uid)
        self.leaving.overdue.discard(uid)
        self.stranded.drop(uid)
        self.departures += pod.node is not None
        self._untrack_bound(uid)
        self.waiting.remove(uid)
        self.reserved.pop(uid, None)
        self.changes.victims.append(uid)  # less is used or requested: shares and room have changed
        node = self.ledger.entries[uid].booking.node
        self.ledger.release(uid)
        if node is not None:
            self.free_node_slot(node)

    def unbind(self, uid: str) -> None:
        """Let an assumed pod wait again: its Bind was refused, or never confirmed."""
        pod, entry = self.pods.get(uid), self.ledger.entries.get(uid)
        if pod is not None and entry is not None and entry.stage is Stage.ASSUMED:
            node = entry.booking.node
            assert node is not None
            self.changes.outside.append(uid)
            self.enqueue(pod)
            self.free_node_slot(node)

    def quota_of(self, uid: str) -> str | None:
        """The quota of a pod, or of a gang that is booked before its pods exist."""
        gang = self.gangs.requesting.get(uid)
        if gang is not None:
            return self.gang_requests.quota_of(gang)
        pod = self.pods[uid]
        if self.ledger.entries[uid].stage >= Stage.ASSUMED:  # it runs, or is about to
            return self.tree.membership.of(pod.quota, pod.namespace)
        return self.tree.quota_of(pod)

    def withdraw(self, uid: str) -> None:
        """Let an assumed pod wait again: its Bind was never handed out."""
        self.enqueue(self.pods[uid])

    def show_assumed(self, uid: str) -> None:
        """Put an assumed pod among the bound ones: the victim search sees it."""
        entry = self.ledger.entries[uid]
        node = replace(self.pods[uid], node=entry.booking.node)
        self.bound_pods.set(node, entry)

    def free_node_slot(self, node: str) -> None:
        """Release the slot of a node that no longer exists once no pod is booked on it."""
        slots = self.nodes.slots
        if node not in self.nodes.known and not self.ledger.by_node.get(slots[node]):
            slots.drop(node)

    def note_outside_change(self, name: str) -> None:
        """The cluster has changed in a way that may give claims their first victims."""
        self.changes.outside.append(name)
        self.changes.victims.append(name)
