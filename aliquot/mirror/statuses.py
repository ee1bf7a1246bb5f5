"""The statuses of objects, as each design writes them, from the engine's figures.

Quotas have `status.used`, and in Koordinator's trees annotations with the other figures. Those of
Queues, PodGroups and Jobs are in `volcano.status`, those of GPUResourceQuotas and GPUs in
`tensor_fusion.status`. Pods have nos' capacity label, in-quota or over-quota. An object is returned
as it should be; the caller writes it if it differs.
"""

from collections import Counter
from collections.abc import Mapping
from functools import cached_property

from aliquot.dialects.core import amounts
from aliquot.dialects.core.manifest import KEP9_GROUPS, NOS_GROUPS, Key, Manifest
from aliquot.dialects.kep9 import quotas
from aliquot.dialects.kep9.objects import QuotaWire
from aliquot.dialects.koordinator.keys import ROOT
from aliquot.dialects.koordinator.status import root_figures, status_annotations
from aliquot.dialects.nos.gpu_memory import as_written
from aliquot.dialects.nos.objects import CompositeQuotaWire
from aliquot.dialects.policy import special_quotas
from aliquot.dialects.tensor_fusion import status as gpu_status
from aliquot.dialects.tensor_fusion.conditions import Conditions
from aliquot.dialects.tensor_fusion.objects import GpuQuotaWire, GpuWire
from aliquot.dialects.volcano import status as volcano_status
from aliquot.dialects.volcano.objects import GangJobWire, PodGroupWire, QueueWire
from aliquot.engine import Engine, GangSummary, QuotaSummary
from aliquot.json import Body
from aliquot.mirror.devices import asks_by_device
from aliquot.mirror.mirror import Mirror
from aliquot.mirror.pod_record import PodRecord

CAPACITY_LABELS = {group: f"{group}/capacity" for group in NOS_GROUPS}
"""The capacity label of pods, by the API group of their quota."""
_DEFAULT_LABEL = CAPACITY_LABELS["nos.nebuly.ai"]
"""The label of pods whose quota is of another group than nos'."""


def capacities(engine: Engine, mirror: Mirror) -> dict[str, str]:
    """In-quota or over-quota by uid, for every running pod that has a quota."""
    over = engine.over_quota_pods()
    return {
        uid: "over-quota" if uid in over else "in-quota"
        for uid, record in mirror.records.items()
        if record.phase == "Running" and engine.quota_of(record.pod) is not None
    }


class CapacityLabels:
    """The capacity labels of pods, as everything is at one moment."""

    def __init__(self, engine: Engine, mirror: Mirror) -> None:
        found = (each for each in mirror.store.objects.values() if each.kind in quotas.KINDS)
        self._keys = {
            quotas.quota_name(each): CAPACITY_LABELS.get(each.group, _DEFAULT_LABEL)
            for each in found
        }
        self._engine = engine
        self._over = engine.over_quota_pods()

    def of(self, record: PodRecord) -> dict[str, str]:
        """The label of a pod; none unless it runs and has a quota."""
        quota = self._engine.quota_of(record.pod) if record.phase == "Running" else None
        if quota is None:
            return {}
        capacity = "over-quota" if record.pod.uid in self._over else "in-quota"
        return {self._keys.get(quota, _DEFAULT_LABEL): capacity}


class Statuses:
    """The engine's figures at one moment, ready to be written into objects."""

    def __init__(self, engine: Engine, mirror: Mirror, conditions: Conditions) -> None:
        self._mirror = mirror
        self._conditions = conditions
        self.quotas = {each.name: each for each in engine.summarise()}
        self.gangs = {each.name: each for each in engine.gangs()}
        self.gpu_quotas = {(each.namespace, each.name): each for each in engine.gpu_quotas()}
        self._engine = engine
        self._trees = special_quotas(engine.policy) == "koordinator"
        self._inside = self._gangs_by_queue()
        sent = mirror.devices.sent
        self._asks = asks_by_device(mirror.records.values()) if sent else {}

    @cached_property
    def _figures(self) -> Mapping[str, Mapping[str, str]]:
        """Koordinator's annotations of each quota, if any has them."""
        return status_annotations(self._engine, self.quotas)

    def of(self, manifest: Manifest) -> Body:
        """The object with its status; unchanged if we write none into its kind."""
        name = f"{manifest.namespace}/{manifest.name}"
        match manifest.content:
            case QuotaWire() | CompositeQuotaWire():
                return self._quota(manifest)
            case QueueWire() if manifest.name in self.quotas:
                used, inside = self.quotas[manifest.name].used, self._inside.get(manifest.name, ())
                return volcano_status.queue(manifest, used, inside)
            case PodGroupWire() if name in self.gangs:
                gang = self._mirror.gangs.sent[name]
                return volcano_status.group(manifest, gang, self.gangs[name])
            case GangJobWire():
                return volcano_status.job(manifest, self._phases().get(manifest.key, {}))
            case GpuQuotaWire() if (manifest.namespace, manifest.name) in self.gpu_quotas:
                summary = self.gpu_quotas[manifest.namespace, manifest.name]
                return gpu_status.quota(manifest, summary, self._conditions)
            case GpuWire() if manifest.name in self._mirror.devices.sent:
                device = self._mirror.devices.sent[manifest.name]
                return gpu_status.gpu(manifest, device, self._asks.get(manifest.name, {}).values())
        return manifest.body

    def _quota(self, manifest: Manifest) -> Body:
        name, body = quotas.quota_name(manifest), manifest.body
        if name not in self.quotas:
            is_root = self._trees and manifest.group in KEP9_GROUPS and manifest.name == ROOT
            return self._root_quota(body) if is_root else body
        used = _used(manifest, self.quotas[name])
        body = {**body, "status": {**(body.get("status") or {}), "used": used}}
        if manifest.group in KEP9_GROUPS and (self._trees or quotas.has_koordinator_keys(manifest)):
            written = body["metadata"].get("annotations") or {}
            figures = {**written, **self._figures[name]}
            body["metadata"] = {**body["metadata"], "annotations": figures}
        return body

    def _root_quota(self, body: Body) -> Body:
        """Koordinator's root quota, which a cluster of its has: the sums of the quotas below it."""
        used, figures = root_figures(self._engine, self.quotas)
        written = body["metadata"].get("annotations") or {}
        return {
            **body,
            "metadata": {**body["metadata"], "annotations": {**written, **figures}},
            "status": {**(body.get("status") or {}), "used": amounts.write(used)},
        }

    def _gangs_by_queue(self) -> dict[str | None, list[GangSummary]]:
        inside: dict[str | None, list[GangSummary]] = {}
        membership, sent = self._mirror.quota_index.membership, self._mirror.gangs.sent
        for name, each in self.gangs.items():
            home = membership.of(sent[name].quota, name.partition("/")[0])
            inside.setdefault(home, []).append(each)
        return inside

    def _phases(self) -> Mapping[Key | None, Counter[str]]:
        phases: dict[Key | None, Counter[str]] = {}
        for record in self._mirror.records.values():
            phases.setdefault(record.owner, Counter())[record.phase] += 1
        return phases


def _used(manifest: Manifest, summary: QuotaSummary) -> dict[str, str]:
    """What a quota uses: of every resource of its pods; as nos does it, only of those it names."""
    bounds = quotas.spec(manifest)
    named = {*summary.min, *summary.max}
    of_nos = manifest.group in NOS_GROUPS
    used = {
        name: amount
        for name, amount in summary.used.items()
        if name in named or (amount and not of_nos)
    }
    return {
        as_written(name, bounds.min, bounds.max): quantity
        for name, quantity in amounts.write(used).items()
    }
