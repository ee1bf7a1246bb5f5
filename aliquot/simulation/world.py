"""The embedded cluster: objects and pods as they are now, and the events they cause.

It does what API server, controllers and kubelets do together: objects change, owners make and
replace pods, pods start and end. It decides nothing; decisions are told to it.
"""

import heapq
from collections.abc import Callable, Iterable
from dataclasses import replace

from aliquot.dialects.core import pods, simulation_annotations
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import Key, Manifest, owner_of, read
from aliquot.dialects.core.objects import Metadata
from aliquot.dialects.core.pod_templates import WORKLOADS
from aliquot.dialects.core.times import timestamp
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.dialects.nos.cards import Cards
from aliquot.dialects.quota_index import Special
from aliquot.dialects.tensor_fusion.quotas import Defaults
from aliquot.dialects.volcano import keys as volcano
from aliquot.engine import Event, ImportanceKey, Pod, importance
from aliquot.mirror.mirror import Mirror
from aliquot.mirror.pod_record import Phase, PodRecord
from aliquot.mirror.store import Change, priority_infos
from aliquot.simulation.pod_groups import Groups
from aliquot.simulation.workloads import Workload


class World:
    """Objects, pods and their owners. What changes is told to `tell`."""

    def __init__(
        self,
        tell: Callable[[Event], None],
        cards: Cards,
        timestamps: Iterable[int] = (),
        special: Special = "",
    ) -> None:
        self.mirror = Mirror(tell, cards, special)
        self._ends: list[tuple[int, str]] = []
        self._workloads: dict[Key, Workload] = {}
        self._uids: dict[str, str] = {}
        self._owners_of_owners: set[Key] = set()
        """Deployments whose ReplicaSets are there too: those make the pods."""
        self._ages = Ages(timestamps)
        self._groups = Groups(self.mirror.store)

    def next_end(self) -> int | None:
        """When the next running pod ends."""
        return self._ends[0][0] if self._ends else None

    def end_due(self, now: int) -> bool:
        """End the pods whose time has come; tells whether there were any."""
        ended = False
        while self._ends and self._ends[0][0] <= now:
            moment, uid = heapq.heappop(self._ends)
            if self.mirror.records[uid].ends == moment:
                self.end(uid, "Succeeded", now)
                ended = True
        return ended

    def start(self, uid: str, node: str, devices: tuple[str, ...], now: int) -> None:
        """A pod runs on a node, on these devices if it asks for any."""
        record = self.mirror.records[uid]
        here = replace(record.pod, node=node, devices=devices, nominated=None, started=now)
        record.pod, record.phase, record.started = here, "Running", now
        self.mirror.tell(record)
        self._await_end(record)

    def _await_end(self, record: PodRecord) -> None:
        if record.ends is not None:
            heapq.heappush(self._ends, (record.ends, record.pod.uid))

    def end(self, uid: str, phase: Phase, now: int) -> None:
        """A pod is no longer there; its owner sees to another one."""
        record = self.mirror.records[uid]
        self.mirror.end(record, phase)
        workload = self._owner(record)
        if workload is not None:
            workload.remove(uid)
            workload.done[workload.task_of(record.pod.task)] += phase == "Succeeded"
            self._reconcile(workload, now)

    def _owner(self, record: PodRecord) -> Workload | None:
        return self._workloads.get(record.owner) if record.owner is not None else None

    def change(self, change: Change) -> None:
        """Delete, then apply, what a moment brings."""
        for key, place in change.delete:
            self._delete(key, place, change.at)
        for manifest in change.apply:
            self.mirror.store.put(manifest)
            owner = owner_of(manifest)
            if owner is not None and isinstance(manifest.content, WORKLOADS):
                self._owners_of_owners.add(owner)
        touched = [*(each.key for each in change.apply), *(key for key, _ in change.delete)]
        touched += self._groups.make(change, self._owners_of_owners)
        self.mirror.restate(touched, lambda group: self._ages.of(group, change.at))
        for manifest in sorted(change.apply, key=lambda each: each.kind != "Pod"):
            self._apply(manifest, change.at)

    def _apply(self, manifest: Manifest, now: int) -> None:
        match manifest.kind:
            case "PodDisruptionBudget":
                self.mirror.state_budget(manifest)
            case "Pod":
                self._apply_pod(manifest, now)
        if isinstance(manifest.content, WORKLOADS):
            self._apply_workload(manifest, now)

    def _delete(self, key: Key, place: str, now: int) -> None:
        kind, namespace, name = key
        for manifest in self.mirror.store.delete(key, place):
            self.mirror.drop(manifest)
            if isinstance(manifest.content, WORKLOADS):
                self._drop_workload(manifest.key, now)
                self._groups.drop(manifest.key)
        if kind == "Pod":
            self._delete_pods(f"{namespace}/{name}", now)
        if kind == "Namespace":
            self._delete_pods(f"{name}/", now)

    def _delete_pods(self, path: str, now: int) -> None:
        """A pod by its path; with a slash at the end, all of a namespace."""
        for uid, record in list(self.mirror.records.items()):
            in_namespace = path.endswith("/") and record.pod.path.startswith(path)
            if not in_namespace and record.pod.path != path:
                continue
            if record.alive:
                self.end(uid, "Deleted", now)
            else:
                self.mirror.gangs.note(record, "Deleted")

    def _apply_pod(self, manifest: Manifest, now: int) -> None:
        said = volcano.group_ref(manifest.metadata, manifest)
        path, status = f"{manifest.namespace}/{manifest.name}", pods.status(manifest)
        old = self.mirror.records.get(self._uids.get(path, ""))
        by_default = self.mirror.gpu_quotas.defaults(manifest.namespace)
        if old is not None and old.alive:
            by_default = old.defaults
        pod = self._pod(manifest, now, said.task, by_default)
        record = PodRecord(pod, manifest.body, defaults=by_default)
        record.owner = owner_of(manifest)
        record.asks_for = koordinator.quota_named(manifest)
        record.group_ref, record.priority = said, record.pod.priority
        self._join(record)
        record.pod = self.mirror.where_it_belongs(record)
        record.duration = simulation_annotations.duration_of(manifest)
        workload = self._owner(record)
        if workload is not None:
            record.duration = record.duration or simulation_annotations.duration_of(
                workload.manifest
            )
        if old is not None and old.alive:
            _carry_over(old, record)
        self.mirror.keep(record)
        self._uids[path] = record.pod.uid
        if workload is not None:
            workload.add(record.pod.uid, record.pod.task)
        if pods.finished(status):
            phase: Phase = "Succeeded" if status.phase == "Succeeded" else "Failed"
            self.end(record.pod.uid, phase, now)
            return
        self.mirror.gangs.note(record, record.phase)
        if record.pod.node is not None and record.phase == "Pending":
            self.start(record.pod.uid, record.pod.node, record.pod.devices, now)
        else:
            self.mirror.tell(record)
            self._await_end(record)

    def _pod(self, manifest: Manifest, now: int, task: str, by_default: Defaults) -> Pod:
        path = f"{manifest.namespace}/{manifest.name}"
        uid = path if path not in self._uids else f"{path}#{len(self.mirror.records)}"
        workload = self._workloads.get(owner_of(manifest) or ("", "", ""))
        if workload is None:
            own = self.mirror.store.priority(pods.spec(manifest), manifest, "spec")
            age = self._ages.of(manifest, now)
            return pods.pod(manifest, uid, own, age, self.mirror.cards, by_default)
        theirs = workload.priority_infos[workload.task_of(task)]
        since = workload.manifest.metadata if workload.applied == now else None
        age = self._ages.of(manifest, now, since)
        return pods.pod(manifest, uid, theirs, age, self.mirror.cards, by_default)

    def _apply_workload(self, manifest: Manifest, now: int) -> None:
        group = self._groups.of(manifest.key)
        workload = Workload(manifest, priority_infos(manifest, self.mirror.store), now, group)
        old = self._workloads.get(manifest.key)
        if old is not None:
            workload.pods, workload.done = old.pods, old.done
            workload.next_index = old.next_index
        self._workloads[manifest.key] = workload
        if old is None:
            self._adopt(workload)
        for uid in workload.all_pods() if group else ():
            self._join(self.mirror.records[uid])
            self.mirror.depend(self.mirror.records[uid])
            self.mirror.restate_pods([uid])
        if old is not None and old.differs(manifest):
            self._end_all(workload.all_pods(), now)
        self._reconcile(workload, now)

    def _adopt(self, workload: Workload) -> None:
        """Pods that were there first, and name this owner."""
        for uid, record in self.mirror.records.items():
            if record.owner == workload.manifest.key:
                workload.done[workload.task_of(record.pod.task)] += record.phase == "Succeeded"
                if record.alive:
                    workload.add(uid, record.pod.task)

    def _join(self, record: PodRecord) -> None:
        """The pods of an owner that has a group are in it, unless they name another."""
        group = self._groups.of(record.owner) if record.owner is not None else ""
        if group and record.group_ref.gang is None:
            record.group_ref = replace(record.group_ref, gang=group)

    def _drop_workload(self, key: Key, now: int) -> None:
        """An owner goes with its pods, those that have ended as well."""
        self._end_all(self._workloads.pop(key).all_pods(), now)
        for record in self.mirror.records.values():
            if record.owner == key:
                self.mirror.gangs.note(record, "Deleted")

    def _end_all(self, uids: list[str], now: int) -> None:
        """Delete pods without their owner replacing them one by one."""
        for uid in uids:
            record = self.mirror.records[uid]
            owner, record.owner = record.owner, None
            self.end(uid, "Deleted", now)
            record.owner = owner
            if owner in self._workloads:
                self._workloads[owner].remove(uid)

    def _reconcile(self, workload: Workload, now: int) -> None:
        """Make the pods that are missing; of too many, end the waiting and the newest first."""
        if workload.manifest.key in self._owners_of_owners:
            return
        wanted = dict.fromkeys(workload.pods, 0) | workload.wanted
        for task, count in wanted.items():
            self._reconcile_task(workload, task, count, now)

    def _reconcile_task(self, workload: Workload, task: str, wanted: int, now: int) -> None:
        """The same, for one task; a template may pin its pods to a node, and needs it there."""
        node = workload.node_name(task) if wanted else None
        if node is not None and ("Node", "", node) not in self.mirror.store.objects:
            wanted = 0
        there = workload.pods.setdefault(task, {})
        while len(there) < wanted:
            name = workload.new_name()
            if f"{workload.manifest.namespace}/{name}" not in self._uids:
                manifest = read(Document(workload.manifest.place, workload.pod_body(name, task)))
                assert manifest is not None
                self._apply_pod(manifest, now)
        if len(there) > wanted:
            by_worth = sorted(there, key=lambda uid: _worth(self.mirror.records[uid]))
            self._end_all(by_worth[wanted:], now)


def _carry_over(old: PodRecord, new: PodRecord) -> None:
    """A pod that is applied again stays the same pod, where it is."""
    new.phase, new.started = old.phase, old.started
    new.pod = replace(
        new.pod,
        uid=old.pod.uid,
        created=old.pod.created,
        node=old.pod.node or new.pod.node,
        devices=old.pod.devices or new.pod.devices,
    )


def _worth(record: PodRecord) -> tuple[bool, ImportanceKey]:
    """Running pods are worth more than waiting ones, of each kind the more important ones."""
    return (record.phase != "Running", importance(record.pod))


class Ages:
    """Ages by arrival; `timestamps` are all that any object ever carries."""

    def __init__(self, timestamps: Iterable[int] = ()) -> None:
        self._ranks = {moment: rank for rank, moment in enumerate(sorted(set(timestamps)))}

    def of(self, manifest: Manifest, now: int, owner: Metadata | None = None) -> int:
        """The age of what comes now; the first pods of an owner are as old as that."""
        written = manifest.metadata.creation_timestamp
        if written is None and owner is not None:
            written = owner.creation_timestamp
        moment = timestamp(written, manifest.place, "metadata.creationTimestamp")
        youngest = len(self._ranks)
        return now + (youngest if moment is None else self._ranks.get(moment, youngest))
