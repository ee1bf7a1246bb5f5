"""The objects as they stand at the end, with what each design writes into them.

ElasticQuota: `status.used`. Pod: node, phase, and while it waits the `PodScheduled` condition with
the reason. Evicted and deleted pods are gone.
"""

from collections.abc import Iterator
from copy import deepcopy

from aliquot.cluster.record import PodRecord
from aliquot.cluster.simulation import Simulation
from aliquot.dialects import amounts
from aliquot.dialects.documents import Body
from aliquot.dialects.quotas import quota_name
from aliquot.engine.summary import QuotaSummary, summarise


def objects(simulation: Simulation) -> Iterator[Body]:
    """All objects: first those given, then the pods."""
    summaries = {each.name: each for each in summarise(simulation.engine.state)}
    for manifest in simulation.world.store.objects.values():
        if manifest.kind == "ElasticQuota":
            yield _quota(manifest.body, summaries[quota_name(manifest)])
        elif manifest.kind != "Pod":
            yield manifest.body
    for record in simulation.world.records.values():
        if record.phase not in ("Evicted", "Deleted"):
            yield _pod(record, simulation)


def _quota(body: Body, summary: QuotaSummary) -> Body:
    named = {*summary.min, *summary.max}
    used = {name: amount for name, amount in summary.used.items() if amount or name in named}
    return {**body, "status": {**(body.get("status") or {}), "used": amounts.write(used)}}


def _pod(record: PodRecord, simulation: Simulation) -> Body:
    body = deepcopy(record.body)
    body["metadata"]["namespace"] = record.pod.namespace
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
