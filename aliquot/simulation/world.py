"""The simulated cluster: its objects and pods as they are now.

It plays the API server, the controllers and the kubelets: objects change, workloads create and
replace pods, pods start and end. What changes goes to the engine through the mirror. It decides
nothing: the simulation carries the engine's decisions out on it. Of the objects' timestamps only
what lies between them counts, since virtual time begins at 0 (`simulation.ages`).
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from aliquot.dialects.claims import ephemeral_claims
from aliquot.dialects.core import lifetimes, nodes, pods, simulation_annotations
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import Key, Manifest, owner_of, read
from aliquot.dialects.core.pod_templates import WORKLOADS
from aliquot.dialects.core.storage import volumes
from aliquot.dialects.daemon_sets import Placement, constraints, placement, readable_node
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.dialects.koordinator.profiles import KIND as PROFILE
from aliquot.dialects.nos.cards import Cards
from aliquot.dialects.quota_index import Special
from aliquot.dialects.tensor_fusion.quotas import Defaults
from aliquot.dialects.topology import nearness
from aliquot.dialects.volcano import keys as volcano
from aliquot.dialects.workloads import job_is_complete
from aliquot.engine import (
    DefaultConstraint,
    Event,
    EvictionKnobs,
    ImportanceKey,
    Pod,
    SystemNamespaces,
    importance,
)
from aliquot.json import Body
from aliquot.mirror.mirror import Mirror
from aliquot.mirror.pod_record import Phase, PodRecord
from aliquot.mirror.store import Change
from aliquot.mirror.template_cache import TemplateCache
from aliquot.simulation.ages import Ages
from aliquot.simulation.cron_jobs import CronJobs
from aliquot.simulation.departures import Departures
from aliquot.simulation.pod_groups import Groups
from aliquot.simulation.workloads import Workload


class World:
    """Objects, pods and their owners. What changes for the engine goes to `send` as events."""

    def __init__(
        self,
        send: Callable[[Event], None],
        cards: Cards,
        ages: Ages | None = None,
        special: Special = "",
        system: SystemNamespaces | None = None,
        max_grace: int = EvictionKnobs().max_grace,
        default_constraints: tuple[DefaultConstraint, ...] = (),
        topology: tuple[str, ...] = (),
    ) -> None:
        self.mirror = Mirror(
            *(send, cards, special),
            system=system,
            default_constraints=default_constraints,
            topology=topology,
        )
        self._templates = TemplateCache(cards)
        self._departures = Departures(self.mirror.records, self._is_ready)
        self._workloads: dict[Key, Workload] = {}
        self._uids: dict[str, str] = {}
        self._by_owner: dict[Key, dict[str, None]] = {}
        """The uids of all pods that have named an owner, by that."""
        self._owners_of_workloads: set[Key] = set()
        """Deployments whose ReplicaSets are in the input too: those make the pods."""
        self._ages = ages or Ages()
        self._max_grace = max_grace
        self._groups = Groups(self.mirror.store)
        self.cron_jobs = CronJobs(self._is_active)
        self.storage_changed = False
        """Has a volume, a claim or a class changed, since this was last reset?"""

    def next_end(self) -> int | None:
        """When the next pod ends; None if none does."""
        return self._departures.next()

    def end_due(self, now: int) -> list[PodRecord]:
        """End the pods whose duration or grace period is over; returns them."""
        ended = []
        for record in self._departures.due(now):
            self.end(record.pod.uid, _last_phase(record, now), now)
            ended.append(record)
        return ended

    def _is_ready(self, node: str) -> bool:
        manifest = self.mirror.store.objects.get(("Node", "", node))
        return manifest is not None and nodes.is_ready(manifest)

    def record_of(self, path: str) -> PodRecord | None:
        """The pod of this path that exists, or the last one that did."""
        uid = self._uids.get(path)
        return None if uid is None else self.mirror.records.get(uid)

    def start(self, uid: str, node: str, devices: tuple[str, ...], now: int) -> None:
        """Start a pod on a node, on these devices if it requests any; others may come after it."""
        record = self.mirror.records[uid]
        self._start(record, node, devices, now, now)
        workload = self._owner(record)
        if workload is not None:
            workload.add(record)
            if workload.makes_more_later:
                self._reconcile(workload, now)

    def _start(
        self, record: PodRecord, node: str, devices: tuple[str, ...], started: int, now: int
    ) -> None:
        """A pod runs from now on; `started` may be before that, if it ran before the simulation."""
        pod = record.pod
        if (pod.node, pod.devices, pod.nominated, pod.started) != (node, devices, None, started):
            pod = replace(pod, node=node, devices=devices, nominated=None, started=started)
        record.pod, record.phase, record.started = pod, "Running", now
        self.mirror.send_pod(record)
        self._departures.add(record, now)

    def expect(self, uid: str, remaining: int, now: int) -> None:
        """Let a pod end after this long, from now or from its start, whatever is written of it."""
        record = self.mirror.records[uid]
        record.duration = remaining + (now - record.started if record.phase == "Running" else 0)
        self._departures.add(record, now)

    def evict(self, uid: str, now: int, *, at_once: bool = False) -> None:
        """Evict a pod: it is gone at once, or it terminates for as long as its annotation says.

        For `maxGrace` at the longest; from its deletion, if it terminates already.
        """
        record = self.mirror.records[uid]
        record.evicted = True
        if at_once or not (record.grace or record.pod.terminating):
            self.end(uid, "Evicted", now)
            return
        pod, granted = record.pod, min(record.pod.grace_period, self._max_grace)
        if pod.terminating and pod.gone_by is not None:
            gone_by = max(pod.gone_by - pod.grace_period + granted, now)
            record.gone_at = gone_by
        else:
            gone_by = now + granted
            record.gone_at = now + min(record.grace, self._max_grace)
        record.pod = replace(pod, terminating=True, gone_by=gone_by, grace_period=granted)
        self.mirror.send_pod(record)
        self._departures.add(record, now)
        workload = self._owner(record)
        if workload is not None:
            workload.add(record)
            self._replace(record, workload, now)

    def end(self, uid: str, phase: Phase, now: int) -> None:
        """End a pod in this phase; its workload replaces it."""
        record = self.mirror.records[uid]
        record.ended = now
        self.mirror.end(record, phase)
        workload = self._owner(record)
        if workload is not None:
            workload.end(record)
            self._replace(record, workload, now)

    def _owner(self, record: PodRecord) -> Workload | None:
        return self._workloads.get(record.owner) if record.owner is not None else None

    def change(self, change: Change) -> None:
        """Delete, then apply, the objects of a change."""
        for key, place in change.delete:
            self._delete(key, place, change.at)
        for manifest in change.apply:
            self._put(manifest)
            owner = owner_of(manifest)
            if owner is not None and isinstance(manifest.content, WORKLOADS):
                self._owners_of_workloads.add(owner)
        touched = [*(each.key for each in change.apply), *(key for key, _ in change.delete)]
        touched += self._groups.make(change, self._owners_of_workloads)
        self.mirror.refresh(touched, lambda group: self._ages.of(group, change.at))
        self._departures.retry(
            {each.name for each in change.apply if each.kind == "Node"}, change.at
        )
        for manifest in sorted(change.apply, key=lambda each: each.kind != "Pod"):
            self._apply(manifest, change.at)
        if any(key[0] == "PriorityClass" for key in touched):
            self._follow_classes(change.at)
        if nodes_touched := {name for kind, _, name in touched if kind == "Node"}:
            self._follow_nodes(sorted(nodes_touched), change.at)

    def _put(self, manifest: Manifest) -> None:
        self.mirror.store.put(manifest)
        self.storage_changed |= manifest.kind in volumes.KINDS

    def put_storage(self, bodies: Iterable[Body], place: str) -> None:
        """Write volumes, claims or classes, as the controllers of a cluster do."""
        written = [read(Document(place, body)) for body in bodies]
        found = [each for each in written if each is not None]
        for each in found:
            self._put(each)
        if found:
            self.mirror.refresh([each.key for each in found], lambda _: 0)

    def _make_claims(self, bodies: Iterable[Body], owner: Manifest) -> None:
        """Make the claims of a pod that are not there."""
        for body in bodies:
            body["metadata"]["namespace"] = owner.namespace
            key = ("PersistentVolumeClaim", owner.namespace, body["metadata"]["name"])
            if key not in self.mirror.store.objects:
                self.put_storage([body], owner.place)

    def _follow_classes(self, now: int) -> None:
        """Workloads make the pods that were refused for a PriorityClass that exists now."""
        for workload in list(self._workloads.values()):
            refused = bool(self.mirror.store.priorities.missing(workload.manifest))
            if refused != workload.refused:
                self._apply_workload(workload.manifest, now)

    def _follow_nodes(self, names: list[str], now: int) -> None:
        """DaemonSets make and end pods where nodes have come, gone or changed."""
        daemon_sets = [each for each in self._workloads.values() if each.is_daemon_set]
        for workload in daemon_sets:
            for name in names:
                workload.places.pop(name, None)
            workload.places |= self._places(workload, names)
            self._reconcile_nodes(workload, names, now)

    def _is_active(self, key: Key) -> bool:
        """Does a Job exist that is not complete?"""
        workload = self._workloads.get(key)
        if workload is None:
            return False
        active = len(workload.all_pods())
        return not job_is_complete(workload.manifest.body, workload.done[""], active)

    def _apply(self, manifest: Manifest, now: int) -> None:
        match manifest.kind:
            case "PodDisruptionBudget":
                self.mirror.send_budget(manifest)
            case "Pod":
                self._apply_pod(manifest, now)
            case "CronJob":
                self.cron_jobs.apply(manifest, now)
        if isinstance(manifest.content, WORKLOADS):
            self._apply_workload(manifest, now)

    def _delete(self, key: Key, place: str, now: int) -> None:
        kind, namespace, name = key
        for manifest in self.mirror.store.delete(key, place):
            self.storage_changed |= manifest.kind in volumes.KINDS
            self.mirror.send_removal(manifest)
            root = self.mirror.quota_index.root_of(manifest) if manifest.kind == PROFILE else None
            if root is not None:
                self.mirror.store.objects.setdefault(root.key, root)
            if isinstance(manifest.content, WORKLOADS):
                self._drop_workload(manifest.key, now)
                self._groups.drop(manifest.key)
            for job in self.cron_jobs.drop(manifest.key):
                if job in self.mirror.store.objects:
                    self._delete(job, place, now)
        if kind == "Node":
            for record in self._departures.terminating_on({name}):
                self.end(record.pod.uid, _last_phase(record, now), now)
        if kind == "Pod":
            self._delete_pods(f"{namespace}/{name}", now)
        if kind == "Namespace":
            self._delete_pods(f"{name}/", now)

    def _delete_pods(self, path: str, now: int) -> None:
        """Delete a pod by its path; with a slash at the end, all pods of a namespace."""
        for uid, record in list(self.mirror.records.items()):
            in_namespace = path.endswith("/") and record.pod.path.startswith(path)
            if not in_namespace and record.pod.path != path:
                continue
            if record.alive:
                self.end(uid, "Deleted", now)
            else:
                self.mirror.gangs.note_phase(record, "Deleted")

    def _apply_pod(self, manifest: Manifest, now: int) -> None:
        ref = volcano.group_ref(manifest.metadata, manifest)
        path, status = f"{manifest.namespace}/{manifest.name}", pods.status(manifest)
        old = self.mirror.records.get(self._uids.get(path, ""))
        by_default = self.mirror.gpu_quotas.defaults(manifest.namespace)
        if old is not None and old.alive:
            by_default = old.defaults
        pod = self._pod(manifest, now, ref.task, by_default)
        if old is not None and old.alive:  # known by these, before anything follows from it
            pod = replace(pod, uid=old.pod.uid, created=old.pod.created)
        record = PodRecord(pod, manifest.body, defaults=by_default, arrived=now)
        record.owner = owner_of(manifest)
        if koordinator.has_keys((manifest.metadata.labels,)):
            record.named_quota = koordinator.quota_named(manifest)
        record.group_ref, record.priority = ref, record.pod.priority
        record.preemptible, record.own_rules = pod.preemptible, pod.rules
        record.nearness = nearness(manifest.metadata.annotations)
        self._join(record)
        record.pod = self.mirror.resolve_pod(record)
        workload = self._owner(record)
        _annotate(record, manifest, workload.manifest if workload is not None else None)
        if old is not None and old.alive:
            _carry_over(old, record)
        self.mirror.add(record)
        self._uids[path] = record.pod.uid
        if any(use.owners for use in record.pod.rules.volumes):
            self._make_claims(ephemeral_claims(manifest.body), manifest)
        if record.owner is not None:
            self._by_owner.setdefault(record.owner, {})[record.pod.uid] = None
        if workload is not None:
            workload.add(record)
        if pods.finished(status):
            phase: Phase = "Succeeded" if status.phase == "Succeeded" else "Failed"
            self.end(record.pod.uid, phase, now)
            return
        self.mirror.gangs.note_phase(record, record.phase)
        if record.pod.node is not None and record.phase == "Pending":
            self._start(record, record.pod.node, record.pod.devices, pod.started, now)
        else:
            self.mirror.send_pod(record)
            self._departures.add(record, now)

    def _pod(self, manifest: Manifest, now: int, task: str, by_default: Defaults) -> Pod:
        path = f"{manifest.namespace}/{manifest.name}"
        uid = path if path not in self._uids else f"{path}#{len(self.mirror.records)}"
        spec, gone_by = pods.spec(manifest), None
        if manifest.metadata.deletion_timestamp is not None:
            gone_by = now + lifetimes.grace_period(manifest, spec)
        shape, rules, images = None, None, None
        if not self.mirror.cards.shared:
            shape, rules, images = self._templates.read(spec, pods.status(manifest), manifest)
        started = self._ages.start(manifest, now) if spec.node_name else 0
        rest = (self.mirror.cards, by_default, shape, started, gone_by, rules, images)
        workload = self._workloads.get(owner_of(manifest) or ("", "", ""))
        if workload is None:
            own = self.mirror.store.priority(spec, manifest, "spec")
            age = self._ages.of(manifest, now)
            return pods.pod(manifest, uid, own, age, *rest)
        by_workload = workload.priority_infos[workload.task_of(task)]
        since = workload.manifest.metadata if workload.applied == now else None
        age = self._ages.of(manifest, now, since)
        return pods.pod(manifest, uid, by_workload, age, *rest)

    def _apply_workload(self, manifest: Manifest, now: int) -> None:
        group = self._groups.of(manifest.key)
        infos = self.mirror.store.priorities.infos(manifest)
        refused = bool(self.mirror.store.priorities.missing(manifest))
        workload = Workload(manifest, infos, now, group, refused=refused)
        old = self._workloads.get(manifest.key)
        if old is not None:
            workload.pods, workload.done = old.pods, old.done
            workload.indexes, workload.next_index = old.indexes, old.next_index
            workload.running, workload.tasks = old.running, old.tasks
        self._workloads[manifest.key] = workload
        if old is None:
            self._adopt(workload)
        for uid in workload.all_pods() if group else ():
            self._join(self.mirror.records[uid])
            self.mirror.track(self.mirror.records[uid])
            self.mirror.refresh_pods([uid])
        if old is not None and old.template_differs(manifest):
            self._end_all(workload.all_pods(), now)
        self._reconcile(workload, now)

    def _adopt(self, workload: Workload) -> None:
        """Add the pods that existed before their workload and name it as their owner."""
        for record in self._owned_by(workload.manifest.key):
            (workload.add if record.alive else workload.end)(record)

    def _owned_by(self, key: Key) -> list[PodRecord]:
        """The pods of a workload, also those that have ended."""
        records = [self.mirror.records[uid] for uid in self._by_owner.get(key, ())]
        return [record for record in records if record.owner == key]

    def _join(self, record: PodRecord) -> None:
        """Put a pod into the PodGroup of its workload, unless it names another."""
        group = self._groups.of(record.owner) if record.owner is not None else ""
        if group and record.group_ref.gang is None:
            record.group_ref = replace(record.group_ref, gang=group)

    def _drop_workload(self, key: Key, now: int) -> None:
        """Delete a workload with its pods, also those that have ended."""
        self._end_all(self._workloads.pop(key).all_pods(), now)
        for record in self._owned_by(key):
            self.mirror.gangs.note_phase(record, "Deleted")

    def _end_all(self, uids: list[str], now: int) -> None:
        """Delete pods without their workload replacing them one by one."""
        for uid in uids:
            record = self.mirror.records[uid]
            owner, record.owner = record.owner, None
            self.end(uid, "Deleted", now)
            record.owner = owner
            if owner in self._workloads:
                self._workloads[owner].remove(uid)

    def _replace(self, record: PodRecord, workload: Workload, now: int) -> None:
        """A pod has ended, or is about to: its workload may want another one."""
        if workload.is_daemon_set:
            self._reconcile_nodes(workload, [workload.task(record)], now)
        else:
            self._reconcile(workload, now)

    def _reconcile(self, workload: Workload, now: int) -> None:
        """Create the pods that are missing; of too many, end waiting and less important ones."""
        if workload.is_daemon_set:
            objects = self.mirror.store.objects
            names = sorted(key[2] for key in objects if key[0] == "Node")
            workload.places = self._places(workload, names)
            self._reconcile_nodes(workload, list(workload.pods | workload.places), now)
            return
        if workload.manifest.key in self._owners_of_workloads:
            return
        before = None
        while (wanted := dict.fromkeys(workload.pods, 0) | workload.wanted) != before:
            for task, count in wanted.items():
                self._reconcile_task(workload, task, count, now)
            before = wanted

    def _reconcile_nodes(self, workload: Workload, names: list[str], now: int) -> None:
        """The same for a DaemonSet on these nodes: what it wants on one does not depend on others.

        So a node that comes costs the same, however many there are.
        """
        if workload.manifest.key not in self._owners_of_workloads:
            for name in names:
                self._reconcile_task(workload, name, workload.wanted_on(name), now)

    def _places(self, workload: Workload, names: list[str]) -> dict[str, Placement]:
        """On which of these nodes a DaemonSet has a pod."""
        where, objects = constraints(workload.manifest.body), self.mirror.store.objects
        there = {name: objects.get(("Node", "", name)) for name in names}
        found = {name: readable_node(each) for name, each in there.items() if each is not None}
        return {
            name: placement(where, node)
            for name, node in found.items()
            if where is not None and node is not None
        }

    def _reconcile_task(self, workload: Workload, task: str, wanted: int, now: int) -> None:
        """The same for one task; pods pinned to a node are created only if the node exists."""
        node = workload.node_name(task) if wanted else None
        if node is not None and ("Node", "", node) not in self.mirror.store.objects:
            wanted = 0
        there = workload.pods.setdefault(task, {})
        while len(there) < wanted:
            name = workload.new_name()
            if f"{workload.manifest.namespace}/{name}" not in self._uids:
                manifest = read(Document(workload.manifest.place, workload.pod_body(name, task)))
                assert manifest is not None
                self._make_claims(workload.claims_of(manifest.name), manifest)
                self._apply_pod(manifest, now)
        if len(there) > wanted:
            in_keep_order = sorted(there, key=lambda uid: _keep_order(self.mirror.records[uid]))
            self._end_all(in_keep_order[wanted:], now)


def _carry_over(old: PodRecord, new: PodRecord) -> None:
    """Keep uid, age, node and devices of a pod that is applied again; its deletion goes on."""
    new.phase, new.started, new.evicted = old.phase, old.started, old.evicted
    new.gone_at, new.arrived = old.gone_at, old.arrived
    new.pod = replace(
        new.pod,
        uid=old.pod.uid,
        created=old.pod.created,
        started=old.pod.started,
        node=old.pod.node or new.pod.node,
        devices=old.pod.devices or new.pod.devices,
    )
    if old.pod.terminating:
        new.pod = replace(new.pod, terminating=True, gone_by=old.pod.gone_by)


def _annotate(record: PodRecord, manifest: Manifest, workload: Manifest | None) -> None:
    """Note how long a pod runs and terminates, by its annotations, else by its workload's.

    Where its spec states no grace period, that of the annotation is the one it is granted.
    """
    if workload is None and not manifest.metadata.annotations:
        return
    written = [manifest] if workload is None else [manifest, workload]
    durations = map(simulation_annotations.duration_of, written)
    graces = map(simulation_annotations.grace_of, written)
    record.duration = next((each for each in durations if each is not None), None)
    record.grace = next((each for each in graces if each is not None), 0)
    if record.grace and pods.spec(manifest).termination_grace_period_seconds is None:
        record.pod = replace(record.pod, grace_period=record.grace)


def _last_phase(record: PodRecord, now: int) -> Phase:
    """The phase in which a pod ends now that was not stopped from outside."""
    if record.evicted:
        return "Evicted"
    terminated = record.pod.gone_by is not None and record.pod.gone_by <= now
    return "Deleted" if terminated else "Succeeded"


def _keep_order(record: PodRecord) -> tuple[bool, ImportanceKey]:
    """The order in which a workload keeps its pods: running before waiting, then by importance."""
    return (record.phase != "Running", importance(record.pod))
