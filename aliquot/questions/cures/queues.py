"""What of queues could be changed so that a pod starts: another, a new one, one that gives back.

A queue that is closed is opened by its own controller, on command; here the pod is moved to one
that is open.
"""

from collections.abc import Iterator, Mapping

from aliquot.dialects.core.manifest import VOLCANO_GROUP, Key, Manifest
from aliquot.dialects.frameworks.fields import Steps
from aliquot.dialects.volcano.keys import QUEUE
from aliquot.engine import Explanation, Reason
from aliquot.json import Body
from aliquot.mirror.pod_record import PodRecord
from aliquot.questions.cures.changes import add, patch
from aliquot.questions.cures.proposal import Proposal
from aliquot.questions.cures.templates import Written, at, nested, written_in
from aliquot.questions.moment import Moment

_MOST_QUEUES = 3
"""Other queues proposed, those that deserve most first: further ones are a choice of the user."""


def proposals(moment: Moment, path: str, explanation: Explanation) -> Iterator[Proposal]:
    """Changes of queues that might let the pod start."""
    record = moment.pod(path)
    assert record is not None
    if moment.policy != "queues":
        return
    reasons = {each.reason for gate in explanation.gates for each in gate.refusals}
    if reasons & {Reason.QUEUE_CLOSED, Reason.QUEUE_MISSING}:
        yield from _moved(moment, record)
    if not explanation.victims:
        yield from _reclaimable(moment, moment.engine.quota_of(record.pod))


def _moved(moment: Moment, record: PodRecord) -> Iterator[Proposal]:
    """The pod, or its gang, in a queue that is open; or the queue that it names, made."""
    objects = moment.simulation.world.mirror.store.objects
    namespace, _, name = (record.pod.gang or "").partition("/")
    group = objects.get(("PodGroup", namespace, name))
    written = Written(group) if group is not None else written_in(moment, record)
    if written is None:
        return
    holder, steps = written.manifest, _where(written)
    now = at(holder.body, steps)
    if not isinstance(now, str):
        return
    share = {each.name: sum(each.runtime.values()) for each in moment.engine.summarise()}
    others = sorted(_open(objects) - {now}, key=lambda each: (-share.get(each, 0), each))
    for other in others[:_MOST_QUEUES]:
        body = nested(holder.body, steps[:-1], {str(steps[-1]): other})
        yield Proposal(f"move it to queue {other}", (patch(holder.key, body),))
    if ("Queue", "", now) not in objects:
        made: Body = {
            "apiVersion": f"{VOLCANO_GROUP}/v1beta1",
            "kind": "Queue",
            "metadata": {"name": now},
            "spec": {"weight": 1, "reclaimable": True},
        }
        yield Proposal(f"add the queue {now}", (add([made]),))


def _where(written: Written) -> Steps:
    """Where a pod, its workload or its gang names its queue."""
    if written.manifest.kind != "Pod" and "queue" in (written.manifest.body.get("spec") or {}):
        return "spec", "queue"
    return (*written.steps, "metadata", "annotations", QUEUE)


def _open(objects: Mapping[Key, Manifest]) -> set[str]:
    """The queues that let pods start."""
    found = set()
    for (kind, _, name), manifest in objects.items():
        if kind == "Queue" and name != "root":
            state = (manifest.body.get("status") or {}).get("state")
            if state in (None, "", "Open"):
                found.add(name)
    return found


def _reclaimable(moment: Moment, quota: str | None) -> Iterator[Proposal]:
    """Queues that use more than they deserve and give nothing back, made to."""
    objects = moment.simulation.world.mirror.store.objects
    for each in moment.engine.summarise():
        found = objects.get(("Queue", "", each.name))
        keeps = found is not None and (found.body.get("spec") or {}).get("reclaimable") is False
        above = any(n > each.runtime.get(r, 0) for r, n in each.used.items())
        if keeps and above and each.name != quota:
            step = patch(("Queue", "", each.name), {"spec": {"reclaimable": True}})
            yield Proposal(f"set reclaimable of queue {each.name} to true", (step,))
