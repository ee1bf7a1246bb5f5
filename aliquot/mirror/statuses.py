"""What each design writes into its objects for users to read, worked out from the engine's figures.

Quotas: `status.used`, and in Koordinator's trees annotations with the other figures; queues, groups
and Jobs of Volcano: see `volcano_status`; quotas on GPUs, and GPUs: see `gpu_status`. An object is
given back as it should stand; whoever keeps the cluster writes what is different.
"""

from collections import Counter
from collections.abc import Mapping

from aliquot.dialects.core import amounts
from aliquot.dialects.core.manifest import KEP9_GROUPS, NOS_GROUPS, Key, Manifest
from aliquot.dialects.kep9 import quotas
from aliquot.dialects.kep9.objects import QuotaWire
from aliquot.dialects.koordinator.status import status_annotations
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


class Statuses:
    """How everything stands at one moment, ready to be written into objects."""

    def __init__(self, engine: Engine, mirror: Mirror, conditions: Conditions) -> None:
        self._mirror = mirror
        self._conditions = conditions
        self.quotas = {each.name: each for each in engine.summarise()}
        self.gangs = {each.name: each for each in engine.gangs()}
        self.gpu_quotas = {(each.namespace, each.name): each for each in engine.gpu_quotas()}
        self._figures = status_annotations(engine, self.quotas)
        self._trees = special_quotas(engine.policy) == "koordinator"
        self._inside = self._gangs_by_queue()
        told = mirror.devices.told
        self._asks = asks_by_device(mirror.records.values()) if told else {}

    def of(self, manifest: Manifest) -> Body:
        """The object with its status; as it is, where it has none of ours."""
        name = f"{manifest.namespace}/{manifest.name}"
        match manifest.content:
            case QuotaWire() | CompositeQuotaWire():
                return self._quota(manifest)
            case QueueWire() if manifest.name in self.quotas:
                used, inside = self.quotas[manifest.name].used, self._inside.get(manifest.name, ())
                return volcano_status.queue(manifest, used, inside)
            case PodGroupWire() if name in self.gangs:
                gang = self._mirror.gangs.told[name]
                return volcano_status.group(manifest, gang, self.gangs[name])
            case GangJobWire():
                return volcano_status.job(manifest, self._phases().get(manifest.key, {}))
            case GpuQuotaWire() if (manifest.namespace, manifest.name) in self.gpu_quotas:
                summary = self.gpu_quotas[manifest.namespace, manifest.name]
                return gpu_status.quota(manifest, summary, self._conditions)
            case GpuWire() if manifest.name in self._mirror.devices.told:
                device = self._mirror.devices.told[manifest.name]
                return gpu_status.gpu(manifest, device, self._asks.get(manifest.name, {}).values())
        return manifest.body

    def _quota(self, manifest: Manifest) -> Body:
        name, body = quotas.quota_name(manifest), manifest.body
        if name not in self.quotas:
            return body
        used = _used(manifest, self.quotas[name])
        body = {**body, "status": {**(body.get("status") or {}), "used": used}}
        if manifest.group in KEP9_GROUPS and (self._trees or quotas.has_koordinator_keys(manifest)):
            written = body["metadata"].get("annotations") or {}
            figures = {**written, **self._figures[name]}
            body["metadata"] = {**body["metadata"], "annotations": figures}
        return body

    def _gangs_by_queue(self) -> dict[str | None, list[GangSummary]]:
        inside: dict[str | None, list[GangSummary]] = {}
        membership, told = self._mirror.quota_index.membership, self._mirror.gangs.told
        for name, each in self.gangs.items():
            home = membership.of(told[name].quota, name.partition("/")[0])
            inside.setdefault(home, []).append(each)
        return inside

    def _phases(self) -> Mapping[Key | None, Counter[str]]:
        phases: dict[Key | None, Counter[str]] = {}
        for record in self._mirror.records.values():
            phases.setdefault(record.owner, Counter())[record.phase] += 1
        return phases


def _used(manifest: Manifest, summary: QuotaSummary) -> dict[str, str]:
    """What it uses: of all that its pods ask for or, as nos does it, of what it names."""
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


CAPACITY_LABELS = {group: f"{group}/capacity" for group in NOS_GROUPS}
_ANY_OTHER = CAPACITY_LABELS["nos.nebuly.ai"]


def capacities(engine: Engine, mirror: Mirror) -> dict[str, str]:
    """In-quota or over-quota, by uid: of every pod that runs and has a quota."""
    over = engine.over_quota_pods()
    return {
        uid: "over-quota" if uid in over else "in-quota"
        for uid, record in mirror.records.items()
        if record.phase == "Running" and engine.quota_of(record.pod) is not None
    }


def capacity_labels(engine: Engine, mirror: Mirror) -> dict[str, dict[str, str]]:
    """The label of each pod that has one, by uid: that of the group of its quota."""
    found = mirror.store.objects.values()
    groups = {quotas.quota_name(each): each.group for each in found if each.kind in quotas.KINDS}
    labels = {}
    for uid, capacity in capacities(engine, mirror).items():
        group = groups.get(engine.quota_of(mirror.records[uid].pod) or "", "")
        labels[uid] = {CAPACITY_LABELS.get(group, _ANY_OTHER): capacity}
    return labels
