"""The operator: what each design writes into its objects, kept up to date.

It looks at everything together, a while after something has changed and never without pause, and
writes only what is different from what the cluster shows. Only fields that are ours are written, by
patches that name the object by its uid: nobody's word is overwritten, and nothing can conflict.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

import structlog

from aliquot.dialects.core.documents import Body
from aliquot.dialects.core.manifest import KEP9_GROUPS, NOS_GROUPS, TENSOR_FUSION, Manifest
from aliquot.dialects.kep9 import quotas
from aliquot.dialects.tensor_fusion.conditions import Conditions
from aliquot.dialects.tensor_fusion.quotas import KIND as GPU_QUOTA
from aliquot.engine import Engine, Pod
from aliquot.errors import ApiError
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import CUSTOM, NAMESPACES, Resource
from aliquot.kube.control.events import About, Kind
from aliquot.kube.control.pod_status import PodStatusWriter
from aliquot.kube.control.scheduler import Scheduler
from aliquot.kube.control.stale_reasons import Reasons
from aliquot.kube.control.writer import Urgency, Write, Writer
from aliquot.kube.observe.metrics import Metrics
from aliquot.kube.observe.metrics_snapshot import MetricsSnapshot
from aliquot.mirror.statuses import Statuses, capacity_labels

_log = structlog.get_logger()

_RESOURCES = {(each.group, each.kind): each for each in CUSTOM.values()}
_PAUSE = 1.0
_PART_OF_TIME = 20
"""After a look around, it rests for so many times as long."""
_ON_ITS_WAY = 5.0
"""For how many seconds a write that does not show yet is not repeated."""
_MADE_WITHIN = 30.0
"""The same for an object that is to be made."""
_CONFLICT = 409
_NO_LONGER_THERE = (404, 422)


class Operator:
    """Writes statuses while its scheduler leads."""

    def __init__(
        self, client: Client, writer: Writer, scheduler: Scheduler, metrics: Metrics
    ) -> None:
        self._client = client
        self._writer = writer
        self._scheduler = scheduler
        self._metrics = metrics
        self._pod_status = PodStatusWriter(client, writer)
        self._reasons = Reasons(self._pod_status)
        self._conditions = Conditions()
        self._engine: Engine | None = None
        self._sent: dict[tuple[str, str], tuple[Body, float]] = {}

    async def run(self) -> None:
        """Look around whenever something was decided, for as long as this is not cancelled."""
        while True:
            await self._scheduler.decided.wait()
            self._scheduler.decided.clear()
            engine = self._scheduler.engine
            if engine is None:
                self._metrics.snapshot = MetricsSnapshot()
                continue
            began = time.perf_counter()
            self.look_around(engine)
            took = time.perf_counter() - began
            await asyncio.sleep(max(_PAUSE, _PART_OF_TIME * took))

    def look_around(self, engine: Engine) -> None:
        """Write whatever is different from what it should be."""
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
        )
        for manifest in list(mirror.store.objects.values()):
            if (manifest.group, manifest.kind) in _RESOURCES:
                self._show(manifest, statuses.of(manifest))
        self._make_missing()
        self._tell_crossings()
        self._label(engine)
        self._reasons.look(engine, self._scheduler.intake)
        self._forget_what_has_come()

    def _forget_what_has_come(self) -> None:
        """What was sent long ago is shown by now, or is to be sent again."""
        longest = time.monotonic() - _MADE_WITHIN
        self._sent = {key: sent for key, sent in self._sent.items() if sent[1] > longest}

    def _begin(self, engine: Engine, objects: Iterable[Manifest]) -> None:
        """Go on from what the objects say of before."""
        self._engine, self._conditions = engine, Conditions()
        self._sent.clear()
        for manifest in objects:
            if manifest.kind == GPU_QUOTA:
                self._conditions.recall(manifest)

    def _pending(self) -> dict[str, int]:
        said = self._scheduler.intake.pods.said
        records = self._scheduler.intake.mirror.records
        waiting = (said[uid] for uid in said if uid in records and records[uid].phase == "Pending")
        return Counter(each.refusal[0] if each.refusal else "Pending" for each in waiting)

    def _show(self, manifest: Manifest, wanted: Body) -> None:
        """Write an object's status, and the figures in its annotations."""
        resource, body = _RESOURCES[manifest.group, manifest.kind], manifest.body
        about = body.get("metadata") or {}
        status = difference(body.get("status") or {}, wanted.get("status") or {})
        ours = {key: value for key, value in status.items() if value is not None}
        if ours:
            self._patch(resource, about, "status", {"status": ours})
        annotations = difference(
            about.get("annotations") or {}, wanted["metadata"].get("annotations") or {}
        )
        if annotations:
            self._patch(resource, about, "", {"metadata": {"annotations": annotations}})

    def _patch(self, resource: Resource, about: Body, part: str, patch: Body) -> None:
        namespace, name = about.get("namespace"), about["name"]
        where = resource.path(namespace, name, part)
        sent = self._sent.get((where, part))
        if sent is not None and sent[0] == patch and time.monotonic() - sent[1] < _ON_ITS_WAY:
            return
        self._sent[where, part] = (patch, time.monotonic())
        uid = {"uid": about["uid"]} if about.get("uid") else {}
        body = {**patch, "metadata": {**patch.get("metadata", {}), **uid}}

        async def run() -> None:
            try:
                await self._client.patch(where, body)
            except ApiError as error:
                if error.code not in _NO_LONGER_THERE:
                    raise

        self._writer.add(Write(where, "status", Urgency.STATUS, run))

    def _make_missing(self) -> None:
        """The quotas and the queue that are there although nobody wrote them become objects."""
        mirror = self._scheduler.intake.mirror
        quota_index = mirror.quota_index
        for manifest, _ in (*quota_index.pairs, *quota_index.queues):
            if manifest.key not in mirror.store.objects:
                self._make(manifest)

    def _make(self, manifest: Manifest) -> None:
        where, sent = manifest.title, self._sent.get((manifest.title, "made"))
        if sent is not None and time.monotonic() - sent[1] < _MADE_WITHIN:
            return
        self._sent[where, "made"] = ({}, time.monotonic())
        groups = KEP9_GROUPS if manifest.group in KEP9_GROUPS else (manifest.group,)
        resources = [_RESOURCES[group, manifest.kind] for group in reversed(groups)]

        async def run() -> None:
            for resource in resources:
                if await self._made(resource, manifest):
                    return

        self._writer.add(Write(where, "make", Urgency.STATUS, run))

    async def _made(self, resource: Resource, manifest: Manifest) -> bool:
        """Make an object, and its namespace if need be; False if its kind is not served."""
        body = {**manifest.body, "apiVersion": resource.api_version}
        where = resource.path(manifest.namespace or None)
        try:
            await self._client.post(where, body)
        except ApiError as error:
            if error.code == 404 and (error.details or {}).get("kind") == "namespaces":
                await self._make_namespace(manifest.namespace)
                await self._client.post(where, body)
            elif error.code == 404:
                return False
            elif error.code != 409:
                raise
        _log.info("made", object=manifest.title)
        return True

    async def _make_namespace(self, name: str) -> None:
        """Make a namespace, unless somebody else just has: several objects go to the same one."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        try:
            await self._client.post(NAMESPACES.path(), body)
        except ApiError as error:
            if error.code != _CONFLICT:
                raise

    def _tell_crossings(self) -> None:
        """An event for each time that a quota on GPUs came to be beyond a bound, or within."""
        crossings = self._conditions.crossings
        for each in crossings:
            about = About(f"{TENSOR_FUSION}/v1", GPU_QUOTA, each.namespace, each.name)
            kind: Kind = "Warning" if each.condition.status else "Normal"
            self._scheduler.events.tell(about, kind, each.condition.reason, each.condition.message)
        crossings.clear()

    def _label(self, engine: Engine) -> None:
        """Say on pods whether they are within their quota, where somebody reads that."""
        intake = self._scheduler.intake
        found = intake.mirror.store.objects.values()
        of_nos = any(each.kind in quotas.KINDS and each.group in NOS_GROUPS for each in found)
        if not of_nos and engine.policy != "fair":
            return
        wanted = capacity_labels(engine, intake.mirror)
        for uid, said in intake.pods.said.items():
            record, should = intake.mirror.records.get(uid), wanted.get(uid, {})
            if record is not None and said.capacity != should:
                self._set_label(record.pod, said.capacity, should)

    def _set_label(self, pod: Pod, has: dict[str, str], should: dict[str, str]) -> None:
        change: dict[str, str | None] = {key: None for key in has if key not in should}
        change |= {key: value for key, value in should.items() if has.get(key) != value}
        sent = self._sent.get((pod.uid, "label"))
        if sent is None or sent[0] != change or time.monotonic() - sent[1] > _ON_ITS_WAY:
            self._sent[pod.uid, "label"] = (dict(change), time.monotonic())
            self._pod_status.label(pod, change)


def difference(old: Any, new: Any) -> Any:
    """What must be patched into `old`; an empty map if it is `new` already."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key not in old:
            patch[key] = value
        elif old[key] != value:
            patch[key] = difference(old[key], value)
    return patch
