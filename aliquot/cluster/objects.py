"""The objects as they stand at the end, with what each design writes into them.

Quotas: `status.used`, and in Koordinator's trees annotations with the other figures; queues, groups
and Jobs of Volcano: see `volcano_status`; quotas on GPUs, and GPUs: see `gpu_status`. Pod: node,
phase, the GPUs that were chosen for it, while it runs in a quota the label that says whether it is
in-quota or over-quota, and while it waits the `PodScheduled` condition with the reason. Evicted and
deleted pods are gone.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy

from aliquot.cluster import volcano_status
from aliquot.cluster.gpu_status import events, with_gpu_status
from aliquot.cluster.outcome import capacities
from aliquot.cluster.record import PodRecord
from aliquot.cluster.simulation import Simulation
from aliquot.dialects import amounts, quotas
from aliquot.dialects.documents import Body
from aliquot.dialects.gpu_annotations import GPU_IDS
from aliquot.dialects.gpu_memory import as_written
from aliquot.dialects.manifest import KEP9_GROUPS, NOS_GROUPS, TENSOR_FUSION, Key, Manifest
from aliquot.dialects.policy import special_quotas
from aliquot.dialects.quota_status import status_annotations
from aliquot.dialects.wire import GangJobWire, PodGroupWire, QueueWire
from aliquot.engine.summary import GangSummary, QuotaSummary

CAPACITY_LABELS = {group: f"{group}/capacity" for group in NOS_GROUPS}
_GONE = ("Evicted", "Deleted")
_ANY_OTHER = CAPACITY_LABELS["nos.nebuly.ai"]


def objects(simulation: Simulation) -> Iterator[Body]:
    """All objects: first those given, then quotas that nobody wrote, then the pods."""
    state, given = simulation.engine.state, simulation.world.store.objects
    summaries = {each.name: each for each in simulation.engine.summarise()}
    figures = status_annotations(state, summaries)
    trees = special_quotas(simulation.engine.policy) == "koordinator"
    forest = simulation.world.forest
    built_in = (each for each, _ in (*forest.pairs, *forest.queues) if each.key not in given)
    of_volcano, of_gpus = _volcano(simulation, summaries), with_gpu_status(simulation)
    for manifest in (*given.values(), *built_in):
        name = quotas.quota_name(manifest)
        if manifest.kind in quotas.KINDS and name in summaries:
            in_a_tree = manifest.group in KEP9_GROUPS and (
                trees or quotas.has_koordinator_keys(manifest)
            )
            yield _quota(manifest, summaries[name], figures[name] if in_a_tree else {})
        elif manifest.group == TENSOR_FUSION:
            yield of_gpus(manifest)
        elif manifest.kind != "Pod":
            yield of_volcano(manifest)
    yield from events(simulation.conditions)
    labels = _capacity_labels(simulation)
    for uid, record in simulation.world.records.items():
        if record.phase not in _GONE:
            yield _pod(record, labels.get(uid, {}), simulation)


def _volcano(
    simulation: Simulation, summaries: Mapping[str, QuotaSummary]
) -> Callable[[Manifest], Body]:
    """What writes the status into queues, groups and Jobs, and leaves other objects alone."""
    world = simulation.world
    gangs = {each.name: each for each in simulation.engine.gangs()}
    inside: dict[str | None, list[GangSummary]] = {}
    for name, each in gangs.items():
        home = world.forest.homes.of(world.gangs[name].quota, name.partition("/")[0])
        inside.setdefault(home, []).append(each)
    phases: dict[Key | None, Counter[str]] = {}
    for record in world.records.values():
        phases.setdefault(record.owner, Counter())[record.phase] += 1

    def with_status(manifest: Manifest) -> Body:
        name = f"{manifest.namespace}/{manifest.name}"
        match manifest.content:
            case QueueWire() if manifest.name in summaries:
                used = summaries[manifest.name].used
                return volcano_status.queue(manifest, used, inside.get(manifest.name, ()))
            case PodGroupWire() if name in gangs:
                return volcano_status.group(manifest, world.gangs[name], gangs[name])
            case GangJobWire():
                return volcano_status.job(manifest, phases.get(manifest.key, {}))
        return manifest.body

    return with_status


def _quota(manifest: Manifest, summary: QuotaSummary, figures: dict[str, str]) -> Body:
    body = manifest.body
    used = _used(manifest, summary)
    body = {**body, "status": {**(body.get("status") or {}), "used": used}}
    if figures:
        written = body["metadata"].get("annotations") or {}
        body["metadata"] = {**body["metadata"], "annotations": {**written, **figures}}
    return body


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


def _capacity_labels(simulation: Simulation) -> dict[str, dict[str, str]]:
    """The label of each pod that has one, by uid: that of the group of its quota."""
    found = simulation.world.store.objects.values()
    groups = {quotas.quota_name(each): each.group for each in found if each.kind in quotas.KINDS}
    tree, records = simulation.engine.state.tree, simulation.world.records
    labels = {}
    for uid, capacity in capacities(simulation).items():
        group = groups.get(tree.home(records[uid].pod) or "", "")
        labels[uid] = {CAPACITY_LABELS.get(group, _ANY_OTHER): capacity}
    return labels


def _pod(record: PodRecord, capacity: dict[str, str], simulation: Simulation) -> Body:
    body = deepcopy(record.body)
    metadata = body["metadata"]
    metadata["namespace"] = record.pod.namespace
    written = metadata.get("labels") or {}
    kept = {key: value for key, value in written.items() if key not in CAPACITY_LABELS.values()}
    if capacity or len(kept) < len(written):
        metadata["labels"] = {**kept, **capacity}
    if record.pod.devices:
        chosen = {GPU_IDS: ",".join(record.pod.devices)}
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **chosen}
    status = body["status"] = body.get("status") or {}
    status["phase"] = record.phase
    if record.pod.node is not None:
        body["spec"]["nodeName"] = record.pod.node
        status.pop("nominatedNodeName", None)
    condition = {"type": "PodScheduled", "status": "True"}
    refusal = simulation.engine.why(record.pod.uid) if record.phase == "Pending" else None
    if refusal is not None:
        condition.update(status="False", reason=refusal.reason.value, message=refusal.message)
    given = status.get("conditions") or []
    others = [each for each in given if each.get("type") != "PodScheduled"]
    status["conditions"] = [*others, condition]
    return body
