"""The operator: keeps statuses and annotations of quotas, queues and gangs, and labels of pods.

It compares all of them with the cluster after decisions or changes, with pauses in between, and
writes only differences. It patches only fields that Aliquot owns, in objects named by their uid: a
field of another writer is never overwritten, and a patch never conflicts.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import structlog

from aliquot.dialects.core.manifest import (
    KEP9_GROUPS,
    NOS_GROUPS,
    TENSOR_FUSION,
    Manifest,
    made_by_aliquot,
)
from aliquot.dialects.kep9 import quotas
from aliquot.dialects.tensor_fusion.conditions import Conditions
from aliquot.dialects.tensor_fusion.quotas import KIND as GPU_QUOTA
from aliquot.engine import SECOND, Engine
from aliquot.errors import ApiError
from aliquot.json import Body
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import CUSTOM, NAMESPACES, Resource
from aliquot.kube.control import root_quotas
from aliquot.kube.control.scheduler import Scheduler
from aliquot.kube.execution.events import InvolvedObject, Kind
from aliquot.kube.execution.stale_reasons import StaleReasons
from aliquot.kube.execution.writer import Urgency, Write, Writer
from aliquot.kube.observe.metrics import Metrics
from aliquot.kube.observe.metrics_snapshot import MetricsSnapshot
from aliquot.mirror.statuses import CapacityLabels, Statuses

_log = structlog.get_logger()

_RESOURCES = {(each.group, each.kind): each for each in CUSTOM.values()}
_PAUSE = 1.0
"""Seconds between two rounds at least: statuses are for people, who do not read faster."""
_PART = 500
"""Pods whose labels are compared before other tasks have their turn: at some 10 us each."""
_PAUSE_FACTOR = 20
"""After a round, pause for so many times as long as it took: at most 5% of the time."""
_REPEAT_SECONDS = 5.0
"""How long a write that the watch does not show yet is not repeated: it shows one in well under a
second, so that only a lost write is."""
_CREATE_SECONDS = 30.0
"""The same for an object that is created: longer, because its kind may not be served at all."""
_OBJECT_GONE = (HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY)
"""The object was deleted, or another one has its name (its uid does not fit)."""


class Operator:
    """Writes statuses while its scheduler leads."""

    def __init__(
        self, client: Client, writer: Writer, scheduler: Scheduler, metrics: Metrics
    ) -> None:
        self._client = client
        self._writer = writer
        self._scheduler = scheduler
        self._metrics = metrics
        self._pod_status = scheduler.pod_status
        self._stale_reasons = StaleReasons(self._pod_status)
        self._conditions = Conditions()
        self._engine: Engine | None = None
        self._sent: dict[tuple[str, str], tuple[Body, float]] = {}
        """The last patch of each object and part, and when it was sent."""

    async def run(self) -> None:
        """Reconcile after decisions and changes, until cancelled."""
        while True:
            await self._scheduler.decided.wait()
            self._scheduler.decided.clear()
            engine = self._scheduler.engine
            if engine is None:
                self._metrics.snapshot = MetricsSnapshot()
                continue
            began = time.perf_counter()
            self.reconcile(engine)
            await self._update_labels(engine)
            took = time.perf_counter() - began
            await asyncio.sleep(max(_PAUSE, _PAUSE_FACTOR * took))

    def reconcile(self, engine: Engine) -> None:
        """Write whatever differs from what the engine and the mirror say."""
        mirror = self._scheduler.intake.mirror
        if engine is not self._engine:
            self._begin(engine, mirror.store.objects.values())
        self._conditions.note(engine.gpu_quotas(), time.time_ns())
        statuses = Statuses(engine, mirror, self._conditions)
        self._metrics.snapshot = MetricsSnapshot(
            quotas=tuple(statuses.quotas.values()),
            queues=tuple(engine.queues()),
            gangs=tuple(statuses.gangs.values()),
            gpu_quotas=tuple(statuses.gpu_quotas.values()),
            pending=self._pending(),
            owed=engine.owed(statuses.quotas),
            passed=_passed(engine, self._scheduler.clock()),
        )
        for manifest in list(mirror.store.objects.values()):
            if (manifest.group, manifest.kind) in _RESOURCES:
                self._write_status(manifest, statuses.of(manifest))
        self._create_missing()
        for manifest, patch in root_quotas.patches(mirror):
            self._keep(manifest, patch)
        self._record_crossings()
        self._stale_reasons.refresh(engine, mirror.quota_index, self._scheduler.clock())
        self._forget_old_writes()

    def _forget_old_writes(self) -> None:
        """An old write is in the cluster by now, or must be sent again."""
        oldest = time.monotonic() - _CREATE_SECONDS
        self._sent = {key: sent for key, sent in self._sent.items() if sent[1] > oldest}

    def _begin(self, engine: Engine, objects: Iterable[Manifest]) -> None:
        """Start with a new engine: take the last conditions of quotas from their statuses."""
        self._engine, self._conditions = engine, Conditions()
        self._sent.clear()
        for manifest in objects:
            if manifest.kind == GPU_QUOTA:
                self._conditions.recall(manifest)

    def _pending(self) -> dict[str, int]:
        """How many pods wait, by the reason in their condition."""
        records = self._scheduler.intake.mirror.records
        waiting = (uid for uid, each in records.items() if each.phase == "Pending")
        refusals = (self._pod_status.refusal(uid) for uid in waiting)
        return Counter(each[0] if each is not None else "Pending" for each in refusals)

    def _write_status(self, manifest: Manifest, wanted: Body) -> None:
        """Write an object's status, and the figures in its annotations."""
        resource, body = _RESOURCES[manifest.group, manifest.kind], manifest.body
        metadata = body.get("metadata") or {}
        status = merge_patch(body.get("status") or {}, wanted.get("status") or {})
        ours = {key: value for key, value in status.items() if value is not None}
        if ours:
            self._patch(resource, metadata, "status", {"status": ours})
        annotations = merge_patch(
            metadata.get("annotations") or {}, wanted["metadata"].get("annotations") or {}
        )
        if annotations:
            self._patch(resource, metadata, "", {"metadata": {"annotations": annotations}})

    def _keep(self, manifest: Manifest, patch: Body) -> None:
        """Patch a profile, or the root quota that is kept for one."""
        resource = _RESOURCES[manifest.group, manifest.kind]
        about = root_quotas.profile_of(manifest)
        self._patch(resource, manifest.body["metadata"], "", patch, about, "root quota")

    def _tell(self, about: InvolvedObject | None, reason: str, error: ApiError) -> None:
        """Record an event: what is kept for a profile could not be written."""
        if about is not None:
            self._scheduler.events.record(about, "Warning", reason, str(error))

    def _patch(
        self,
        resource: Resource,
        metadata: Body,
        part: str,
        patch: Body,
        about: InvolvedObject | None = None,
        purpose: str = "",
    ) -> None:
        namespace, name = metadata.get("namespace"), metadata["name"]
        where = resource.path(namespace, name, part)
        key = where, purpose or part
        sent = self._sent.get(key)
        if sent is not None and sent[0] == patch and time.monotonic() - sent[1] < _REPEAT_SECONDS:
            return
        self._sent[key] = (patch, time.monotonic())
        uid = {"uid": metadata["uid"]} if metadata.get("uid") else {}
        body = {**patch, "metadata": {**patch.get("metadata", {}), **uid}}

        async def run() -> None:
            try:
                await self._client.patch(where, body)
            except ApiError as error:
                if error.code not in _OBJECT_GONE:
                    self._tell(about, "UpdateQuotaFailed", error)
                    raise

        self._writer.add(Write(where, purpose or "status", Urgency.STATUS, run))

    def _create_missing(self) -> None:
        """Create what no user wrote: default quotas, the default queue, PodGroups of jobs."""
        mirror = self._scheduler.intake.mirror
        quota_index = mirror.quota_index
        for manifest, _ in (*quota_index.pairs, *quota_index.queues):
            if manifest.key not in mirror.store.objects:
                self._create(manifest)
        for manifest in mirror.gangs.of_jobs.derived():
            self._write_pod_group(manifest, mirror.store.objects.get(manifest.key))

    def _write_pod_group(self, wanted: Manifest, written: Manifest | None) -> None:
        """Create the PodGroup of a job's gang, or bring it up to date."""
        if written is None:
            self._create(wanted)
        elif made_by_aliquot(written):
            patch = merge_patch(
                written.body.get("spec") or {}, {"queue": "default", **wanted.body["spec"]}
            )
            if patch:
                resource = _RESOURCES[written.group, written.kind]
                self._patch(resource, written.body["metadata"], "", {"spec": patch})

    def _create(self, manifest: Manifest) -> None:
        where, sent = manifest.title, self._sent.get((manifest.title, "made"))
        if sent is not None and time.monotonic() - sent[1] < _CREATE_SECONDS:
            return
        self._sent[where, "made"] = ({}, time.monotonic())
        groups = KEP9_GROUPS if manifest.group in KEP9_GROUPS else (manifest.group,)
        resources = [_RESOURCES[group, manifest.kind] for group in reversed(groups)]

        async def run() -> None:
            for resource in resources:
                if await self._create_in(resource, manifest):
                    return

        self._writer.add(Write(where, "make", Urgency.STATUS, run))

    async def _create_in(self, resource: Resource, manifest: Manifest) -> bool:
        """Create an object, and its namespace if need be; False if its kind is not served."""
        body = {**manifest.body, "apiVersion": resource.api_version}
        where = resource.path(manifest.namespace or None)
        try:
            await self._client.post(where, body)
        except ApiError as error:
            missing = error.code == HTTPStatus.NOT_FOUND
            if missing and (error.details or {}).get("kind") == "namespaces":
                if not await self._create_namespace(manifest):
                    return True
                await self._client.post(where, body)
            elif missing:
                return False
            elif error.code != HTTPStatus.CONFLICT:
                self._tell(root_quotas.profile_of(manifest), "CreateQuotaFailed", error)
                raise
        _log.info("made", object=manifest.title)
        return True

    async def _create_namespace(self, manifest: Manifest) -> bool:
        """Create the namespace of an object; it may exist by now, as several need the same one.

        An installation has no right to create namespaces: then the object, which is only there to
        be seen, waits until an administrator creates it. Returns whether it is there.
        """
        name = manifest.namespace
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        try:
            await self._client.post(NAMESPACES.path(), body)
        except ApiError as error:
            if error.code == HTTPStatus.FORBIDDEN:
                _log.info("namespace missing", namespace=name, object=manifest.title)
                return False
            if error.code != HTTPStatus.CONFLICT:
                raise
        return True

    def _record_crossings(self) -> None:
        """Record an event for each GPUResourceQuota that has crossed a bound, in or out."""
        crossings = self._conditions.crossings
        for each in crossings:
            about = InvolvedObject(f"{TENSOR_FUSION}/v1", GPU_QUOTA, each.namespace, each.name)
            kind: Kind = "Warning" if each.condition.status else "Normal"
            condition = each.condition
            self._scheduler.events.record(about, kind, condition.reason, condition.message)
        crossings.clear()

    async def _update_labels(self, engine: Engine) -> None:
        """Label pods as within or over their quota's min, where nos or the fair policy is used.

        In parts: other tasks have their turn in between.
        """
        mirror = self._scheduler.intake.mirror
        found = mirror.store.objects.values()
        of_nos = any(each.kind in quotas.KINDS and each.group in NOS_GROUPS for each in found)
        if not of_nos and engine.policy != "fair":
            return
        self._pod_status.forget_old_labels()
        labels, records = CapacityLabels(engine, mirror), list(mirror.records.values())
        for begin in range(0, len(records), _PART):
            part = records[begin : begin + _PART]
            wanted = {record.pod.uid: labels.of(record) for record in part}
            self._pod_status.update_labels((record.pod for record in part), wanted)
            await asyncio.sleep(0)


def _passed(engine: Engine, now: int) -> dict[str, float]:
    """By quota, for how many seconds the waiting claim has been passed that was passed first."""
    return {quota or "": (now - since) / SECOND for quota, since in engine.passed_since().items()}


def merge_patch(old: Any, new: Any) -> Any:
    """The JSON merge patch that makes `new` of `old`; empty if they are equal."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key not in old:
            patch[key] = value
        elif old[key] != value:
            patch[key] = merge_patch(old[key], value)
    return patch
