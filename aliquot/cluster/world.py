"""The embedded cluster: objects and pods as they are now, and the events they cause.

It does what API server, controllers and kubelets do together: objects change, owners make and
replace pods, pods start and end. It decides nothing; decisions are told to it.
"""

import heapq
from collections.abc import Callable, Iterable
from dataclasses import replace

from aliquot.cluster import annotations
from aliquot.cluster.belonging import group_key, group_of, queue_of
from aliquot.cluster.changes import Change
from aliquot.cluster.groups import Groups
from aliquot.cluster.record import Phase, PodRecord
from aliquot.cluster.store import Store
from aliquot.cluster.workloads import Manners, Workload, owner_of
from aliquot.dialects import (
    budgets,
    gangs,
    jobs,
    koordinator,
    nodes,
    pods,
    queues,
    quotas,
    volcano,
)
from aliquot.dialects.cards import Cards
from aliquot.dialects.documents import Document
from aliquot.dialects.forest import Forest, Special, plant
from aliquot.dialects.labels import texts
from aliquot.dialects.manifest import Key, Manifest, read
from aliquot.dialects.templates import MAKERS, faces
from aliquot.dialects.times import timestamp
from aliquot.dialects.wire import GangJobWire, PodSpec, PodStatus, PodWire
from aliquot.engine.events import (
    BudgetGone,
    BudgetSet,
    Event,
    NodeGone,
    NodeSet,
    PodGone,
    PodSet,
    QuotaGone,
    QuotaSet,
)
from aliquot.engine.objects import Pod
from aliquot.engine.order import Key as OrderKey
from aliquot.engine.order import importance

_ORDER = ("PriorityClass", "Node", "Pod")


class World:
    """Objects, pods and their owners. What changes is told to `tell`."""

    def __init__(
        self,
        tell: Callable[[Event], None],
        cards: Cards,
        timestamps: Iterable[int] = (),
        special: Special = "",
    ) -> None:
        self.store = Store()
        self.forest = Forest()
        """The quotas as they were last told, with what they mean to each other."""
        self.records: dict[str, PodRecord] = {}
        self._tell = tell
        self._cards = cards
        self._ends: list[tuple[int, str]] = []
        self._workloads: dict[Key, Workload] = {}
        self._uids: dict[str, str] = {}
        self._owners_of_owners: set[Key] = set()
        """Deployments whose ReplicaSets are there too: those make the pods."""
        self._age_ranks = {moment: rank for rank, moment in enumerate(sorted(set(timestamps)))}
        self._special = special
        self._asking: dict[str, dict[str, None]] = {}
        """The pods that ask for a quota, by the name they call it."""
        self._tied: dict[Key, dict[str, None]] = {}
        """The pods whose gang or queue depends on an object: their group, or their namespace."""
        self._groups = Groups(self.store, tell)
        self._restate_quotas()

    def next_end(self) -> int | None:
        """When the next running pod ends."""
        return self._ends[0][0] if self._ends else None

    def end_due(self, now: int) -> bool:
        """End the pods whose time has come; tells whether there were any."""
        ended = False
        while self._ends and self._ends[0][0] <= now:
            moment, uid = heapq.heappop(self._ends)
            if self.records[uid].ends == moment:
                self.end(uid, "Succeeded", now)
                ended = True
        return ended

    def start(self, uid: str, node: str, now: int) -> None:
        """A pod runs on a node."""
        record = self.records[uid]
        record.pod = replace(record.pod, node=node, nominated=None, started=now)
        record.phase = "Running"
        record.started = now
        self._tell(PodSet(record.pod))
        self._await_end(record)

    def _await_end(self, record: PodRecord) -> None:
        if record.ends is not None:
            heapq.heappush(self._ends, (record.ends, record.pod.uid))

    def end(self, uid: str, phase: Phase, now: int) -> None:
        """A pod is no longer there; its owner sees to another one."""
        record = self.records[uid]
        record.phase = phase
        self._tell(PodGone(uid))
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
            self.store.put(manifest)
            owner = owner_of(manifest)
            if owner is not None and isinstance(manifest.content, MAKERS):
                self._owners_of_owners.add(owner)
        touched = {each.key for each in change.apply} | {key for key, _ in change.delete}
        if {kind for kind, _, _ in touched} & {*quotas.KINDS, queues.KIND, "Namespace"}:
            self._restate_quotas()
        self._restate_gangs(change, touched)
        rank = {kind: place for place, kind in enumerate(_ORDER)}
        for manifest in sorted(change.apply, key=lambda each: rank.get(each.kind, len(_ORDER))):
            self._apply(manifest, change.at)

    def _restate_quotas(self) -> None:
        """Tell what has become of the quotas, parents first, and of the pods that name them."""
        before, self.forest = self.forest, plant(self.store.objects.values(), self._special)
        for name, quota in self.forest.quotas.items():
            if before.quotas.get(name) != quota:
                self._tell(QuotaSet(quota))
        for name in reversed(before.quotas):
            if name not in self.forest.quotas:
                self._tell(QuotaGone(name))
        for name, uids in self._asking.items():
            if before.names.get(name) != self.forest.names.get(name):
                self._restate_pods(uids)
        if bool(before.queues) != bool(self.forest.queues):
            self._restate_pods(self.records)

    def _restate_gangs(self, change: Change, touched: set[Key]) -> None:
        """Tell what has become of the gangs, and of the pods whose gang or queue that changes."""
        touched = touched | self._groups.make(change)
        age = self._created
        self._groups.restate(touched, bool(self.forest.queues), lambda m: age(m, None, change.at))
        tied = (uid for each in touched for uid in self._tied.get(each, ()))
        self._restate_pods(dict.fromkeys(tied))

    def _restate_pods(self, uids: Iterable[str]) -> None:
        """Where these pods belong may be another quota now, or another gang."""
        for uid in list(uids):
            record = self.records[uid]
            pod = replace(record.pod, quota=self._quota(record), gang=self._gang(record))
            if pod != record.pod:
                record.pod = pod
                if record.alive:
                    self._tell(PodSet(pod))

    def _quota(self, record: PodRecord) -> str | None:
        """What a pod asks for, as things are."""
        pod = record.pod
        queue = queue_of(record.ties, pod.namespace, self.store.objects)
        return self.forest.asked_for(record.asks_for, pod.namespace, pod.priority, queue)

    def _gang(self, record: PodRecord) -> str | None:
        """The gang that a pod names, if it is there."""
        group = group_of(record.ties, record.pod.namespace, self.store.objects)
        return gangs.gang_name(group) if group is not None else None

    def restate_budgets(self) -> None:
        """Do what the disruption controller does: say anew what budgets allow, as pods run now."""
        for manifest in self.store.objects.values():
            if manifest.kind == "PodDisruptionBudget" and not budgets.has_status(manifest):
                self._state_budget(manifest)

    def _state_budget(self, manifest: Manifest) -> None:
        running, waiting = (
            [record.pod for record in self.records.values() if record.phase == phase]
            for phase in ("Running", "Pending")
        )
        self._tell(BudgetSet(budgets.budget(manifest, running, waiting)))

    def _apply(self, manifest: Manifest, now: int) -> None:
        match manifest.kind:
            case "Node":
                self._tell(NodeSet(nodes.node(manifest, self._cards)))
            case "PodDisruptionBudget":
                self._state_budget(manifest)
            case "Pod":
                self._apply_pod(manifest, now)
        if isinstance(manifest.content, MAKERS):
            self._apply_workload(manifest, now)

    def _delete(self, key: Key, place: str, now: int) -> None:
        kind, namespace, name = key
        for manifest in self.store.delete(key, place):
            match manifest.kind:
                case "Node":
                    self._tell(NodeGone(manifest.name))
                case "PodDisruptionBudget":
                    self._tell(BudgetGone(f"{manifest.namespace}/{manifest.name}"))
                case _ if isinstance(manifest.content, MAKERS):
                    self._drop_workload(manifest.key, now)
                    self._groups.drop(manifest.key)
        if kind == "Pod":
            self._delete_pods(f"{namespace}/{name}", now)
        if kind == "Namespace":
            self._delete_pods(f"{name}/", now)

    def _delete_pods(self, path: str, now: int) -> None:
        """A pod by its path; with a slash at the end, all of a namespace."""
        for uid, record in list(self.records.items()):
            in_namespace = path.endswith("/") and record.pod.path.startswith(path)
            if record.alive and (in_namespace or record.pod.path == path):
                self.end(uid, "Deleted", now)

    def _apply_pod(self, manifest: Manifest, now: int) -> None:
        content = manifest.content
        assert isinstance(content, PodWire)
        status = content.status or PodStatus()
        path = f"{manifest.namespace}/{manifest.name}"
        record = PodRecord(self._pod(manifest, content, status, now), manifest.body)
        record.owner = owner_of(manifest)
        record.asks_for = koordinator.quota_named(manifest)
        record.ties = volcano.ties(manifest.metadata, manifest)
        record.pod = replace(
            record.pod, quota=self._quota(record), gang=self._gang(record), task=record.ties.task
        )
        record.duration = annotations.lasts(manifest)
        workload = self._owner(record)
        if workload is not None:
            record.duration = record.duration or annotations.lasts(workload.manifest)
        old = self.records.get(self._uids.get(path, ""))
        if old is not None and old.alive:
            _carry_over(old, record)
        self._note_quota(record)
        self._note_ties(record)
        self.records[record.pod.uid] = record
        self._uids[path] = record.pod.uid
        if workload is not None:
            workload.add(record.pod.uid, record.pod.task)
        if pods.finished(status):
            phase: Phase = "Succeeded" if status.phase == "Succeeded" else "Failed"
            self.end(record.pod.uid, phase, now)
        elif record.pod.node is not None and record.phase == "Pending":
            self.start(record.pod.uid, record.pod.node, now)
        else:
            self._tell(PodSet(record.pod))
            self._await_end(record)

    def _note_quota(self, record: PodRecord) -> None:
        """Remember who asks for a quota, under what name; and no longer what it asked before."""
        uid = record.pod.uid
        old = self.records.get(uid)
        if old is not None and old.asks_for is not None:
            del self._asking[old.asks_for][uid]
        if record.asks_for is not None:
            self._asking.setdefault(record.asks_for, {})[uid] = None

    def _note_ties(self, record: PodRecord) -> None:
        """Remember what else decides where this pod belongs. It never hurts to remember more."""
        group = group_key(record.ties, record.pod.namespace)
        for each in (group, ("Namespace", "", record.pod.namespace)):
            if each is not None:
                self._tied.setdefault(each, {})[record.pod.uid] = None

    def _pod(self, manifest: Manifest, content: PodWire, status: PodStatus, now: int) -> Pod:
        spec = content.spec or PodSpec()
        workload = self._workloads.get(owner_of(manifest) or ("", "", ""))
        if workload is not None:
            task = volcano.ties(manifest.metadata, manifest).task
            priority, preempts = workload.manners[workload.task_of(task)]
        else:
            priority, preempts = self.store.priority(spec, manifest, "spec")
        path = f"{manifest.namespace}/{manifest.name}"
        labels = texts(manifest.metadata.labels, manifest, "metadata.labels")
        return Pod(
            uid=path if path not in self._uids else f"{path}#{len(self.records)}",
            namespace=manifest.namespace,
            name=manifest.name,
            shape=pods.shape(spec, status, manifest, self._cards),
            priority=priority,
            created=self._created(manifest, workload, now),
            node=spec.node_name or None,
            nominated=status.nominated_node_name or None,
            gated=bool(spec.scheduling_gates),
            terminating=content.metadata.deletion_timestamp is not None,
            preempts=preempts,
            preemptible=koordinator.is_preemptible(labels)
            and volcano.is_preemptable(manifest.metadata),
            labels=tuple(sorted(labels.items())),
        )

    def _created(self, manifest: Manifest, workload: Workload | None, now: int) -> int:
        """Its age: when it came; of those that came together, the older timestamp first.

        The first pods of a workload are as old as the workload.
        """
        written = manifest.metadata.creation_timestamp
        if written is None and workload is not None and workload.applied == now:
            written = workload.manifest.metadata.creation_timestamp
        moment = timestamp(written, manifest.place, "metadata.creationTimestamp")
        ranks = self._age_ranks
        return now + (len(ranks) if moment is None else ranks.get(moment, len(ranks)))

    def _apply_workload(self, manifest: Manifest, now: int) -> None:
        group = self._groups.of_job(manifest)
        workload = Workload(manifest, self._manners(manifest), now, group)
        old = self._workloads.get(manifest.key)
        if old is not None:
            workload.pods, workload.done = old.pods, old.done
            workload.next_index = old.next_index
        self._workloads[manifest.key] = workload
        if old is None:
            self._adopt(workload)
        elif old.differs(manifest):
            self._end_all(workload.all_pods(), now)
        self._reconcile(workload, now)

    def _manners(self, manifest: Manifest) -> dict[str, Manners]:
        """How the pods of a workload behave, by task; a Job's class is that of all its tasks."""
        found = faces(manifest)
        if not isinstance(manifest.content, GangJobWire):
            (face,) = found
            return {"": self.store.priority(face.spec, manifest, face.spec_field)}
        named = jobs.spec(manifest).priority_class_name
        manners = {}
        for task, face in zip(jobs.tasks(manifest), found, strict=True):
            spec = face.spec or PodSpec()
            if named and not spec.priority_class_name and spec.priority is None:
                spec = PodSpec(priority_class_name=named, preemption_policy=spec.preemption_policy)
            manners[task.name] = self.store.priority(spec, manifest, face.spec_field)
        return manners

    def _adopt(self, workload: Workload) -> None:
        """Pods that were there first, and name this owner."""
        for uid, record in self.records.items():
            if record.owner == workload.manifest.key:
                workload.done[workload.task_of(record.pod.task)] += record.phase == "Succeeded"
                if record.alive:
                    workload.add(uid, record.pod.task)

    def _drop_workload(self, key: Key, now: int) -> None:
        self._end_all(self._workloads.pop(key).all_pods(), now)

    def _end_all(self, uids: list[str], now: int) -> None:
        """Delete pods without their owner replacing them one by one."""
        for uid in uids:
            record = self.records[uid]
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
        if node is not None and ("Node", "", node) not in self.store.objects:
            wanted = 0
        there = workload.pods.setdefault(task, {})
        while len(there) < wanted:
            name = workload.new_name()
            if f"{workload.manifest.namespace}/{name}" not in self._uids:
                manifest = read(Document(workload.manifest.place, workload.pod_body(name, task)))
                assert manifest is not None
                self._apply_pod(manifest, now)
        if len(there) > wanted:
            by_worth = sorted(there, key=lambda uid: _worth(self.records[uid]))
            self._end_all(by_worth[wanted:], now)


def _carry_over(old: PodRecord, new: PodRecord) -> None:
    """A pod that is applied again stays the same pod, where it is."""
    new.phase, new.started = old.phase, old.started
    new.pod = replace(
        new.pod, uid=old.pod.uid, created=old.pod.created, node=old.pod.node or new.pod.node
    )


def _worth(record: PodRecord) -> tuple[bool, OrderKey]:
    """Running pods are worth more than waiting ones, of each kind the more important ones."""
    return (record.phase != "Running", importance(record.pod))
