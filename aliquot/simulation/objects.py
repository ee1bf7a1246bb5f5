"""The objects at the end of a simulation, with the statuses that each design writes.

`mirror.statuses` has those of quotas, queues, groups and GPUs. A pod has its node, its phase and
its assigned GPUs; while it runs in a quota, the capacity label; while it waits, the `PodScheduled`
condition with the reason. Evicted and deleted pods are left out, once they have terminated.
"""

from collections.abc import Iterator
from copy import deepcopy

from aliquot.dialects.core.times import moment
from aliquot.dialects.tensor_fusion.annotations import GPU_IDS
from aliquot.dialects.tensor_fusion.status import events
from aliquot.json import Body
from aliquot.mirror.pod_record import PodRecord
from aliquot.mirror.statuses import CAPACITY_LABELS, CapacityLabels, Statuses
from aliquot.simulation.simulation import Simulation

_GONE = ("Evicted", "Deleted")


def objects(simulation: Simulation) -> Iterator[Body]:
    """All objects: first those given, then built-in quotas, then events and pods."""
    engine, mirror = simulation.engine, simulation.world.mirror
    given, quota_index = mirror.store.objects, mirror.quota_index
    built_in = (
        each for each, _ in (*quota_index.pairs, *quota_index.queues) if each.key not in given
    )
    statuses = Statuses(engine, mirror, simulation.conditions)
    for manifest in (*given.values(), *built_in):
        if manifest.kind != "Pod":
            yield statuses.of(manifest)
    yield from events(simulation.conditions)
    labels = CapacityLabels(engine, mirror)
    for record in mirror.records.values():
        if record.phase not in _GONE:
            yield _pod(record, labels.of(record), simulation)


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
    if record.pod.gone_by is not None:
        metadata.setdefault("deletionTimestamp", moment(record.pod.gone_by))
    status = body["status"] = body.get("status") or {}
    status["phase"] = record.phase
    if record.pod.node is not None:
        body["spec"]["nodeName"] = record.pod.node
        status.pop("nominatedNodeName", None)
    condition = {"type": "PodScheduled", "status": "True"}
    pending = record.phase == "Pending"
    refusal = simulation.engine.why(record.pod.uid, simulation.now) if pending else None
    if refusal is not None:
        condition.update(status="False", reason=refusal.reason.value, message=refusal.message)
    given = status.get("conditions") or []
    others = [each for each in given if each.get("type") != "PodScheduled"]
    status["conditions"] = [*others, condition]
    return body
