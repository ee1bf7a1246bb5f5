"""The embedded cluster: objects and pods as they are now, and the events they cause.

It does what API server, controllers and kubelets do together: objects change, owners make and
replace pods, pods start and end. It decides nothing; decisions are told to it.
"""

import heapq
from collections.abc import Callable, Iterable
from dataclasses import replace

from aliquot.cluster.inputs import Change
from aliquot.cluster.record import Phase, PodRecord
from aliquot.cluster.store import Store
from aliquot.cluster.workloads import Workload, owner_of
from aliquot.dialects import nodes, pods, quotas
from aliquot.dialects.documents import Document
from aliquot.dialects.manifest import Key, Manifest, read
from aliquot.dialects.times import duration, timestamp
from aliquot.dialects.wire import Metadata, PodSpec, PodStatus, PodWire, WorkloadWire
from aliquot.engine.events import Event, NodeGone, NodeSet, PodGone, PodSet, QuotaGone, QuotaSet
from aliquot.engine.objects import Pod

DURATION = "sim.aliquot.dev/duration"
_ORDER = ("PriorityClass", "Node", "ElasticQuota", "Pod")


class World:
    """Objects, pods and their owners. What changes is told to `tell`."""

    def __init__(self, tell: Callable[[Event], None], timestamps: Iterable[int] = ()) -> None:
        self.store = Store()
        self.records: dict[str, PodRecord] = {}
        self._tell = tell
        self._ends: list[tuple[int, str]] = []
        self._workloads: dict[Key, Workload] = {}
        self._uids: dict[str, str] = {}
        self._owners_of_owners: set[Key] = set()
        """Deployments whose ReplicaSets are there too: those make the pods."""
        self._age_ranks = {moment: rank for rank, moment in enumerate(sorted(set(timestamps)))}

    def next_end(self) -> int | None:
        """When the next running pod ends."""
        return self._ends[0][0] if self._ends else None

    def end_due(self, now: int) -> bool:
        """End the pods whose time has come; tells whether there were any."""
        ended = False
        while self._ends and self._ends[0][0] <= now:
            _, uid = heapq.heappop(self._ends)
            if self.records[uid].alive:
                self.end(uid, "Succeeded", now)
                ended = True
        return ended

    def start(self, uid: str, node: str, now: int) -> None:
        """A pod runs on a node."""
        record = self.records[uid]
        record.pod = replace(record.pod, node=node, nominated=None)
        record.phase = "Running"
        self._tell(PodSet(record.pod))
        if record.duration is not None:
            heapq.heappush(self._ends, (now + record.duration, uid))

    def end(self, uid: str, phase: Phase, now: int) -> None:
        """A pod is no longer there; its owner sees to another one."""
        record = self.records[uid]
        record.phase = phase
        self._tell(PodGone(uid))
        workload = self._workloads.get(record.owner) if record.owner is not None else None
        if workload is not None:
            workload.pods.pop(uid, None)
            workload.done += phase == "Succeeded"
            self._reconcile(workload, now)

    def change(self, change: Change) -> None:
        """Delete, then apply, what a moment brings."""
        for key, place in change.delete:
            self._delete(key, place, change.at)
        for manifest in change.apply:
            self.store.put(manifest)
            owner = owner_of(manifest)
            if owner is not None and isinstance(manifest.content, WorkloadWire):
                self._owners_of_owners.add(owner)
        rank = {kind: place for place, kind in enumerate(_ORDER)}
        for manifest in sorted(change.apply, key=lambda each: rank.get(each.kind, len(_ORDER))):
            self._apply(manifest, change.at)

    def _apply(self, manifest: Manifest, now: int) -> None:
        match manifest.kind:
            case "Node":
                self._tell(NodeSet(nodes.node(manifest)))
            case "ElasticQuota":
                self._tell(QuotaSet(quotas.quota(manifest)))
            case "Pod":
                self._apply_pod(manifest, now)
        if isinstance(manifest.content, WorkloadWire):
            self._apply_workload(manifest, now)

    def _delete(self, key: Key, place: str, now: int) -> None:
        kind, namespace, name = key
        for manifest in self.store.delete(key, place):
            match manifest.kind:
                case "Node":
                    self._tell(NodeGone(manifest.name))
                case "ElasticQuota":
                    self._tell(QuotaGone(quotas.quota_name(manifest)))
                case _ if isinstance(manifest.content, WorkloadWire):
                    self._drop_workload(manifest.key, now)
        if kind == "Pod":
            self._delete_pods(f"{namespace}/{name}", now)
        if kind == "Namespace":
            self._delete_pods(f"{name}/", now)

    def _delete_pods(self, path: str, now: int) -> None:
        """A pod by its path; with a slash at the end, all of a namespace."""
        for uid, record in list(self.records.items()):
            mine = record.pod.path == path or (
                path.endswith("/") and record.pod.path.startswith(path)
            )
            if mine and record.alive:
                self.end(uid, "Deleted", now)

    def _apply_pod(self, manifest: Manifest, now: int) -> PodRecord:
        content = manifest.content
        assert isinstance(content, PodWire)
        status = content.status or PodStatus()
        path = f"{manifest.namespace}/{manifest.name}"
        old = self.records.get(self._uids.get(path, ""))
        if old is not None and not old.alive:
            old = None
        pod = self._pod(manifest, content, status, now)
        if old is not None:
            pod = replace(
                pod, uid=old.pod.uid, created=old.pod.created, node=old.pod.node or pod.node
            )
        record = PodRecord(pod, manifest.body, "Pending" if old is None else old.phase)
        record.owner = owner_of(manifest)
        workload = self._workloads.get(record.owner) if record.owner is not None else None
        record.duration = _lasts(manifest, workload)
        self.records[pod.uid] = record
        self._uids[path] = pod.uid
        if workload is not None:
            workload.pods[pod.uid] = None
        if pods.finished(status):
            self.end(pod.uid, "Succeeded" if status.phase == "Succeeded" else "Failed", now)
        elif pod.node is not None and record.phase == "Pending":
            self.start(pod.uid, pod.node, now)
        else:
            self._tell(PodSet(pod))
        return record

    def _pod(self, manifest: Manifest, content: PodWire, status: PodStatus, now: int) -> Pod:
        spec = content.spec or PodSpec()
        priority, preempts = self.store.priority(spec, manifest, "spec")
        path = f"{manifest.namespace}/{manifest.name}"
        return Pod(
            uid=path if path not in self._uids else f"{path}#{len(self.records)}",
            namespace=manifest.namespace,
            name=manifest.name,
            shape=pods.shape(spec, status, manifest),
            priority=priority,
            created=self._created(manifest, content.metadata, now),
            node=spec.node_name or None,
            nominated=status.nominated_node_name or None,
            gated=bool(spec.scheduling_gates),
            terminating=content.metadata.deletion_timestamp is not None,
            preempts=preempts,
        )

    def _created(self, manifest: Manifest, metadata: Metadata, now: int) -> int:
        """Its age: when it came; of those that came together, the older timestamp first."""
        place, field = f"{manifest.place}: {manifest.title}", "metadata.creationTimestamp"
        moment = timestamp(metadata.creation_timestamp, place, field)
        ranks = self._age_ranks
        return now + (len(ranks) if moment is None else ranks.get(moment, len(ranks)))

    def _apply_workload(self, manifest: Manifest, now: int) -> None:
        workload = self._workloads.get(manifest.key)
        if workload is None:
            workload = self._workloads[manifest.key] = Workload(manifest)
            for uid, record in self.records.items():
                if record.owner == manifest.key:
                    workload.done += record.phase == "Succeeded"
                    if record.alive:
                        workload.pods[uid] = None
        else:
            outdated = list(workload.pods) if workload.differs(manifest) else []
            workload.manifest = manifest
            for uid in outdated:
                self.end(uid, "Deleted", now)
        self._reconcile(workload, now)

    def _drop_workload(self, key: Key, now: int) -> None:
        workload = self._workloads.pop(key)
        for uid in list(workload.pods):
            self.end(uid, "Deleted", now)

    def _reconcile(self, workload: Workload, now: int) -> None:
        """Make the pods that are missing; of too many, end the waiting and the newest first."""
        if workload.manifest.key in self._owners_of_owners:
            return
        while len(workload.pods) < workload.wanted:
            name = workload.new_name()
            if f"{workload.manifest.namespace}/{name}" not in self._uids:
                body = workload.pod_body(name)
                manifest = read(Document(workload.manifest.place, body))
                assert manifest is not None
                self._apply_pod(manifest, now)
        surplus = len(workload.pods) - workload.wanted
        if surplus > 0:
            by_worth = sorted(workload.pods, key=lambda uid: _worth(self.records[uid]))
            for uid in by_worth[:surplus]:
                self.end(uid, "Deleted", now)


def _worth(record: PodRecord) -> tuple[bool, int]:
    """Waiting pods go before running ones, of each the youngest first."""
    return (record.phase == "Running", -record.pod.created)


def _lasts(manifest: Manifest, workload: Workload | None) -> int | None:
    """How long the pod runs, by its own word or its owner's; None for ever."""
    sources = [manifest] if workload is None else [manifest, workload.manifest]
    for source in sources:
        value = (source.metadata.annotations or {}).get(DURATION)
        if value is not None:
            field = f"metadata.annotations[{DURATION}]"
            return duration(value, f"{source.place}: {source.title}", field)
    return None
