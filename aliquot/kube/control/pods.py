"""Pods as they are watched: which of them count, what they ask for, what they say of themselves.

A pod of ours waits for us; everybody's bound pods hold what they hold. Pods of other schedulers
that wait are not ours to look at. Pods made from one template are read once: what they ask for is
found again by their words. Nothing here decides or writes.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import msgspec

from aliquot.dialects.core import pods
from aliquot.dialects.core.manifest import Manifest, owner_of
from aliquot.dialects.core.objects import PodSpec, PodStatus, PodWire
from aliquot.dialects.core.times import timestamp
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.dialects.tensor_fusion import annotations as gpu_annotations
from aliquot.dialects.volcano import keys as volcano
from aliquot.engine import Shape
from aliquot.errors import InputError
from aliquot.mirror.mirror import Mirror
from aliquot.mirror.pod_record import Phase, PodRecord
from aliquot.mirror.statuses import CAPACITY_LABELS

DEFAULT_SCHEDULER = "default-scheduler"
_PLACE = "cluster"
_MOST_SHAPES = 20_000

Unreadable = Callable[[PodWire, InputError], None]


@dataclass(slots=True)
class Said:
    """What the cluster shows of a pod that we may have written."""

    created: int = 0
    nominated: str | None = None
    refusal: tuple[str, str] | None = None
    """Reason and message of the condition that says that it is not scheduled."""
    capacity: dict[str, str] = field(default_factory=dict)
    """Its labels about being within its quota's guarantee."""


class Pods:
    """The pods of a cluster, kept in a mirror."""

    def __init__(
        self, mirror: Mirror, names: Collection[str], unreadable: Unreadable | None = None
    ) -> None:
        self.said: dict[str, Said] = {}
        """By uid, of every pod that counts."""
        self.koordinator: dict[str, None] = {}
        """The pods with keys that are written for Koordinator."""
        self.sharing: dict[str, bool] = {}
        """The pods that ask for parts of GPUs; does it matter to them what those can compute?"""
        self.unread: dict[str, tuple[PodWire, InputError]] = {}
        """The pods that wait and make no sense, and why not."""
        self._mirror = mirror
        self._names = names
        self._unreadable = unreadable
        self._shapes: dict[bytes, Shape] = {}
        self._encoder = msgspec.json.Encoder()

    def put(self, wire: PodWire) -> None:
        """A pod is there, like this."""
        uid, spec = wire.metadata.uid or "", wire.spec or PodSpec()
        if not spec.node_name and (spec.scheduler_name or DEFAULT_SCHEDULER) not in self._names:
            self.gone(uid)
            return
        self.unread.pop(uid, None)
        self._note_keys(uid, wire)
        if pods.finished(wire.status):
            self._finished(uid, wire)
            return
        record = self._read(wire)
        if record is None:
            self._leave_out(uid)
            return
        self._keep(record, self._mirror.records.get(uid))

    def gone(self, uid: str) -> None:
        """A pod is no longer there, or does not count."""
        self.koordinator.pop(uid, None)
        self.sharing.pop(uid, None)
        self.unread.pop(uid, None)
        self._leave_out(uid)

    def _leave_out(self, uid: str) -> None:
        """Know nothing of a pod, but keep what it says of how the cluster is shared.

        Whether it makes sense may depend on just that.
        """
        self.said.pop(uid, None)
        if uid in self._mirror.records:
            self._mirror.forget(uid)

    def _keep(self, record: PodRecord, old: PodRecord | None) -> None:
        mirror = self._mirror
        record.pod = mirror.with_quota_and_gang(record)
        mirror.add(record)
        mirror.gangs.note_phase(record, record.phase)
        if old is None or not old.alive or old.pod != record.pod:
            mirror.send_pod(record)

    def _finished(self, uid: str, wire: PodWire) -> None:
        """It holds nothing any more; its gang remembers how it ended."""
        old = self._mirror.records.get(uid)
        well = wire.status is not None and wire.status.phase == "Succeeded"
        phase: Phase = "Succeeded" if well else "Failed"
        if old is None:
            record = self._read(wire)
            self.said.pop(uid, None)
            if record is None or record.group_ref.gang is None:
                return
            record.phase = phase
            self._mirror.add(record)
            self._mirror.gangs.note_phase(record, phase)
        elif old.alive:
            self._mirror.end(old, phase)
        self.said.pop(uid, None)

    def _read(self, wire: PodWire) -> PodRecord | None:
        """The pod; where it makes no sense, what it holds all the same, or nothing if it waits."""
        try:
            return self._record(wire)
        except InputError as error:
            waits = not (wire.spec or PodSpec()).node_name
            if waits and not pods.finished(wire.status):
                self.unread[wire.metadata.uid or ""] = (wire, error)
            if self._unreadable is not None:
                self._unreadable(wire, error)
        if waits:
            return None
        bare = msgspec.structs.replace(wire.metadata, labels=None, annotations=None)
        try:
            return self._record(msgspec.structs.replace(wire, metadata=bare))
        except InputError:
            return None

    def _record(self, wire: PodWire) -> PodRecord:
        manifest, mirror = _manifest(wire), self._mirror
        uid, spec, status = wire.metadata.uid or "", pods.spec(manifest), pods.status(manifest)
        created = timestamp(wire.metadata.creation_timestamp, _PLACE, "creationTimestamp") or 0
        priority_infos = mirror.store.priority(spec, manifest, "spec")
        old = mirror.records.get(uid)
        defaults = old.defaults if old else mirror.gpu_quotas.defaults(manifest.namespace)
        shape = None if mirror.cards.shared else self._shape(spec, status, manifest)
        started = 0
        if spec.node_name:
            started = timestamp(status.start_time, _PLACE, "startTime") or created
        asked = (mirror.cards, defaults, shape, started)
        pod = pods.pod(manifest, uid, priority_infos, created, *asked)
        record = PodRecord(pod, {}, "Running" if pod.node else "Pending", defaults=defaults)
        record.owner = owner_of(manifest)
        if uid in self.koordinator:
            record.named_quota = koordinator.quota_named(manifest)
        record.group_ref, record.priority = volcano.group_ref(wire.metadata, manifest), pod.priority
        self.said[uid] = _said(wire, created)
        return record

    def _shape(self, spec: PodSpec, status: PodStatus, manifest: Manifest) -> Shape:
        """What a pod asks for; those that say the same in the same words share it."""
        words = self._encoder.encode(
            (
                *(spec.containers, spec.init_containers, spec.resources, spec.overhead),
                *(spec.node_selector, spec.affinity, spec.tolerations),
                *(status.container_statuses, status.init_container_statuses),
            )
        )
        known = self._shapes.get(words)
        if known is None:
            if len(self._shapes) >= _MOST_SHAPES:
                self._shapes.clear()
            known = pods.shape(spec, status, manifest, self._mirror.cards)
            self._shapes[words] = known
        return known

    def _note_keys(self, uid: str, wire: PodWire) -> None:
        """Remember whom a pod is written for, as far as that decides how the cluster is shared."""
        self.koordinator.pop(uid, None)
        self.sharing.pop(uid, None)
        if koordinator.has_keys((wire.metadata.labels,)):
            self.koordinator[uid] = None
        if gpu_annotations.requests_gpus(wire.metadata):
            self.sharing[uid] = gpu_annotations.requests_compute(wire.metadata)


def _manifest(wire: PodWire) -> Manifest:
    about = wire.metadata
    return Manifest("Pod", "", about.namespace or "", about.name, _PLACE, wire, {})


def _said(wire: PodWire, created: int) -> Said:
    status, labels = wire.status or PodStatus(), wire.metadata.labels or {}
    refusal = None
    for each in status.conditions or ():
        if each.type == "PodScheduled" and each.status == "False":
            refusal = (each.reason or "", each.message or "")
    capacity = {key: str(labels[key]) for key in CAPACITY_LABELS.values() if key in labels}
    return Said(created, status.nominated_node_name or None, refusal, capacity)
