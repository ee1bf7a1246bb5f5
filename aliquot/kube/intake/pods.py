"""Pods from the watch into the mirror: which of them count, and what they request.

Pending pods count if they name one of our schedulers; bound pods count whichever scheduler bound
them, because they use their node. Pods of one template share one `Shape`, their images
and their rules (`template_cache`). Nothing here decides or writes.
"""

from collections.abc import Container

import msgspec
import structlog

from aliquot.dialects.core import lifetimes, pod_rules, pods
from aliquot.dialects.core.manifest import Manifest, owner_of
from aliquot.dialects.core.objects import PodSpec, PodStatus, PodWire
from aliquot.dialects.core.times import timestamp
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.dialects.tensor_fusion import annotations as gpu_annotations
from aliquot.dialects.topology import nearness
from aliquot.dialects.volcano import keys as volcano
from aliquot.engine import Pod, Shape
from aliquot.errors import InputError
from aliquot.kube.exchange.shown_status import ShownStatus
from aliquot.mirror.mirror import Mirror
from aliquot.mirror.pod_record import Phase, PodRecord
from aliquot.mirror.statuses import CAPACITY_LABELS
from aliquot.mirror.template_cache import TemplateCache

_PLACE = "cluster"
"""What errors name in place of a file."""
_log = structlog.get_logger()


class Pods:
    """The pods of a cluster, applied to a mirror."""

    def __init__(self, mirror: Mirror, scheduler_names: Container[str]) -> None:
        self.shown: dict[str, ShownStatus] = {}
        """By uid, of every pod that counts, and of pending ones that are invalid."""
        self.sharing: dict[str, bool] = {}
        """The uids of pods that request parts of GPUs; do they request compute (TFLOPs), too?"""
        self.invalid: dict[str, tuple[Pod, InputError]] = {}
        """The pending pods that are invalid, and why, by uid."""
        self.grown: dict[str, Pod] = {}
        """The bound pods that request more than before, since they were last looked at, by uid."""
        self._mirror = mirror
        self._scheduler_names = scheduler_names
        self._templates = TemplateCache(mirror.cards)

    def put(self, wire: PodWire) -> None:
        """A pod was created or changed."""
        uid, spec = wire.metadata.uid or "", wire.spec or PodSpec()
        scheduler = spec.scheduler_name or pods.DEFAULT_SCHEDULER
        if not spec.node_name and scheduler not in self._scheduler_names:
            self.gone(uid)
            return
        self.invalid.pop(uid, None)
        self._note_keys(uid, wire)
        if pods.finished(wire.status):
            self._finished(uid, wire)
            return
        record = self._read(wire)
        if record is None:
            self._drop(uid)
            if uid in self.invalid:
                self.shown[uid] = _shown(wire)
            return
        self._keep(record, self._mirror.records.get(uid))

    def gone(self, uid: str) -> None:
        """A pod was deleted, or does not count."""
        self.sharing.pop(uid, None)
        self.invalid.pop(uid, None)
        self._drop(uid)

    def _drop(self, uid: str) -> None:
        """Drop a pod from the mirror, but keep its part in `sharing`.

        That decides the sharing mode, on which it may depend whether the pod is valid.
        """
        self.shown.pop(uid, None)
        self.grown.pop(uid, None)
        if uid in self._mirror.records:
            self._mirror.forget(uid)

    def _keep(self, record: PodRecord, old: PodRecord | None) -> None:
        mirror = self._mirror
        record.pod = mirror.resolve_pod(record)
        mirror.add(record)
        mirror.gangs.note_phase(record, record.phase)
        if old is None or not old.alive or old.pod != record.pod:
            if old is not None and _has_grown(old.pod, record.pod):
                self.grown[record.pod.uid] = record.pod
            mirror.send_pod(record)

    def _finished(self, uid: str, wire: PodWire) -> None:
        """The pod has ended and uses nothing any more; its gang remembers how it ended."""
        old = self._mirror.records.get(uid)
        well = wire.status is not None and wire.status.phase == "Succeeded"
        phase: Phase = "Succeeded" if well else "Failed"
        if old is None:
            record = self._read(wire)
            self.shown.pop(uid, None)
            if record is None or not self._may_be_in_gang(record):
                return
            record.phase = phase
            self._mirror.add(record)
            self._mirror.gangs.note_phase(record, phase)
        elif old.alive:
            self._mirror.end(old, phase)
        self.shown.pop(uid, None)

    def _may_be_in_gang(self, record: PodRecord) -> bool:
        named = record.group_ref.gang is not None
        return named or self._mirror.gangs.of_record(record) is not None

    def _read(self, wire: PodWire) -> PodRecord | None:
        """The pod's record; None if it is invalid and pending.

        An invalid pod that is bound is read without labels, annotations and rules: it uses its
        node.
        """
        try:
            return self._record(wire)
        except InputError as error:
            waits = not (wire.spec or PodSpec()).node_name
            if waits and not pods.finished(wire.status):
                self.invalid[wire.metadata.uid or ""] = (_bare_pod(wire), error)
            _log.warning("a pod makes no sense", problem=str(error))
        if waits:
            return None
        bare = msgspec.structs.replace(wire.metadata, labels=None, annotations=None)
        spec = pod_rules.without_rules(wire.spec or PodSpec())
        try:
            return self._record(msgspec.structs.replace(wire, metadata=bare, spec=spec))
        except InputError:
            return None

    def _record(self, wire: PodWire) -> PodRecord:
        manifest, mirror = _manifest(wire), self._mirror
        uid, spec, status = wire.metadata.uid or "", pods.spec(manifest), pods.status(manifest)
        created = timestamp(wire.metadata.creation_timestamp, _PLACE, "creationTimestamp") or 0
        priority_infos = mirror.store.priority(spec, manifest, "spec")
        old = mirror.records.get(uid)
        defaults = old.defaults if old else mirror.gpu_quotas.defaults(manifest.namespace)
        shape, rules, images = None, None, None
        if not mirror.cards.shared:
            shape, rules, images = self._templates.read(spec, status, manifest)
        started = 0
        if spec.node_name:
            started = lifetimes.start_time(manifest, status) or created
        gone_by = timestamp(wire.metadata.deletion_timestamp, _PLACE, "deletionTimestamp")
        rest = (mirror.cards, defaults, shape, started, gone_by, rules, images)
        pod = pods.pod(manifest, uid, priority_infos, created, *rest)
        record = PodRecord(pod, {}, "Running" if pod.node else "Pending", defaults=defaults)
        record.owner = owner_of(manifest)
        if koordinator.has_keys((wire.metadata.labels,)):
            record.named_quota = koordinator.quota_named(manifest)
        record.group_ref, record.priority = volcano.group_ref(wire.metadata, manifest), pod.priority
        record.preemptible, record.own_rules = pod.preemptible, pod.rules
        record.nearness = nearness(wire.metadata.annotations)
        self.shown[uid] = _shown(wire)
        return record

    def _note_keys(self, uid: str, wire: PodWire) -> None:
        """Note the labels and annotations of a pod that bear on the sharing mode."""
        self.sharing.pop(uid, None)
        if gpu_annotations.requests_gpus(wire.metadata):
            self.sharing[uid] = gpu_annotations.requests_compute(wire.metadata)


def _has_grown(old: Pod, new: Pod) -> bool:
    """Does a bound pod request more than before? It was resized in place."""
    if old.node is None or old.node != new.node or old.shape == new.shape:
        return False
    before = dict(old.shape.requests)
    return any(amount > before.get(name, 0) for name, amount in new.shape.requests)


def _manifest(wire: PodWire) -> Manifest:
    metadata = wire.metadata
    return Manifest("Pod", "", metadata.namespace or "", metadata.name, _PLACE, wire, {})


def _bare_pod(wire: PodWire) -> Pod:
    """A pod by its name alone, for one that is invalid."""
    metadata = wire.metadata
    return Pod(metadata.uid or "", metadata.namespace or "", metadata.name, Shape(()))


def _shown(wire: PodWire) -> ShownStatus:
    status, labels = wire.status or PodStatus(), wire.metadata.labels or {}
    refusal = None
    for each in status.conditions or ():
        if each.type == "PodScheduled" and each.status == "False":
            refusal = (each.reason or "", each.message or "")
    capacity = {key: str(labels[key]) for key in CAPACITY_LABELS.values() if key in labels}
    bound = wire.spec is not None and bool(wire.spec.node_name)
    return ShownStatus(status.nominated_node_name or None, refusal, bound, capacity)
