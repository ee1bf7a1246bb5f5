"""What of pods could be changed so that one starts: its own words, or the end of others.

Of the pod itself: less of a request that is refused, a node selector or a rule that leaves it no
node with room, its preemptionPolicy, its priority class. Of others: the least set that frees the
missing room and right by ending, found by the victim search over all running pods. One that ends by
itself is waited for, before one is deleted.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from aliquot.dialects.core.manifest import Key
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.dialects.topology import REQUIRED
from aliquot.dialects.volcano import declared_gangs
from aliquot.dialects.volcano import keys as volcano
from aliquot.engine import CRITICAL_PRIORITY, Explanation, Reason, quantity
from aliquot.json import Body, fresh
from aliquot.mirror.pod_record import PodRecord
from aliquot.questions.cures.changes import Step, delete, key_of, patch, wait
from aliquot.questions.cures.proposal import Proposal
from aliquot.questions.cures.templates import Written, written_in
from aliquot.questions.moment import Moment
from aliquot.server.patch.merge import merge_patch
from aliquot.server.rules.core_rules import check_update

_MOST_ENDINGS = 3
_MOST_TAINTS = 2
"""Sets of taints that are proposed to be tolerated."""
_MOST_CLASSES = 2
"""Priority classes proposed: the lowest that might do, and the highest."""


def proposals(moment: Moment, path: str, explanation: Explanation) -> Iterator[Proposal]:
    """Changes of pods that might let the pod start."""
    record = moment.pod(path)
    assert record is not None
    refused = {gate.gate for gate in explanation.gates if not gate.passes}
    yield from _endings(moment, record, explanation)
    written = written_in(moment, record)
    if written is not None:
        there = moment.simulation.world.mirror.store.objects.get(pod_key(record.pod.path))
        own = written if there is None else Written(there)
        found = (
            *_of_words(own, record, refused),
            *_of_nodes(moment, written, record, refused),
            *_smaller(moment, written, record, explanation),
            *_priorities(moment, written, record),
        )
        yield from (_made_anew(moment, each) for each in found)
    if "Gang" in refused:
        yield from _gang(moment, record, explanation)
    reasons = {each.reason for gate in explanation.gates for each in gate.refusals}
    if Reason.TOPOLOGY_UNSATISFIED in reasons:
        yield from _anywhere(moment, record)


def _endings(moment: Moment, record: PodRecord, explanation: Explanation) -> Iterator[Proposal]:
    """Pods that end by themselves, and are waited for; else pods to be deleted."""
    records = moment.simulation.world.mirror.records
    leaving = [each for each in explanation.victims if records[each].pod.terminating]
    if leaving and len(leaving) == len(explanation.victims) <= _MOST_ENDINGS:
        paths = [str(records[uid].pod.path) for uid in leaving]
        steps = tuple(wait(pod_key(path)) for path in paths)
        yield Proposal(f"wait for {', '.join(paths)}, which terminates, to be gone", steps)
    running = {uid: each for uid, each in records.items() if each.phase == "Running"}
    known = {uid for uid, each in running.items() if _has_end(each)}
    passing = {uid for uid, each in running.items() if not each.pod.endless}
    groups = [known, passing, set(running)]
    for uids in moment.engine.endings(record.pod.uid, groups):
        if not uids or len(uids) > _MOST_ENDINGS:
            continue
        paths = [str(records[uid].pod.path) for uid in uids]
        keys = [pod_key(path) for path in paths]
        words = ", ".join(paths)
        if all(uid in passing for uid in uids):
            yield Proposal(f"wait for {words} to end", tuple(wait(key) for key in keys))
        if all(records[uid].owner is None for uid in uids):
            yield Proposal(f"delete {words}", tuple(delete(key) for key in keys))


def _has_end(record: PodRecord) -> bool:
    return record.pod.terminating or record.pod.expected_end is not None


def pod_key(path: str) -> Key:
    """The key of a pod's object."""
    namespace, _, name = path.partition("/")
    return "Pod", namespace, name


def _made_anew(moment: Moment, proposal: Proposal) -> Proposal:
    """The same, said so where a server does not let the spec of a pod or a Job change."""
    (step,) = proposal.steps
    key = key_of(step["object"])
    there = moment.simulation.world.mirror.store.objects[key]
    if not moment.source.accepted or key[0] not in ("Pod", "Job"):
        return proposal
    changed = merge_patch(there.body, step["patch"])
    if not check_update(key[0], there.body, changed):
        return proposal
    what = "the pod" if key[0] == "Pod" else f"Job {key[1]}/{key[2]}"
    words = f"{proposal.summary}, and make {what} anew"
    return replace(proposal, summary=words, remade=True)


def _patched(written: Written, field: Body) -> Step:
    """The patch of fields of the spec of the pods."""
    return patch(written.manifest.key, written.patched("spec", field=field))


def _of_words(written: Written, record: PodRecord, refused: set[str]) -> Iterator[Proposal]:
    """Gates that the pod's own words close."""
    manifest, spec = written.manifest, written.spec
    if "SchedulingGates" in refused and spec.get("schedulingGates"):
        names = ", ".join(each.get("name", "") for each in spec["schedulingGates"])
        step = _patched(written, {"schedulingGates": None})
        yield Proposal(f"remove the scheduling gates {names}", (step,))
    if not record.pod.preempts:
        step = _patched(written, {"preemptionPolicy": "PreemptLowerPriority"})
        yield Proposal("let it preempt: preemptionPolicy PreemptLowerPriority", (step,))
    if not written.is_pod:
        return
    labels = manifest.body.get("metadata", {}).get("labels") or {}
    named = [key for key in koordinator.QUOTA if key in labels]
    if "QuotaAccess" in refused and named:
        body = {"metadata": {"labels": dict.fromkeys(named)}}
        yield Proposal(f"remove its label {named[0]}", (patch(manifest.key, body),))
    kept = not record.pod.preemptible and volcano.PREEMPTABLE in written.annotations
    if "Deserved" in refused and kept:
        body = {"metadata": {"annotations": {volcano.PREEMPTABLE: None}}}
        words = f"let it be preempted: remove its annotation {volcano.PREEMPTABLE}"
        yield Proposal(words, (patch(manifest.key, body),))
    if "NonPreemptible" in refused and koordinator.PREEMPTIBLE in labels:
        body = {"metadata": {"labels": {koordinator.PREEMPTIBLE: None}}}
        words = f"let it be preempted: remove its label {koordinator.PREEMPTIBLE}"
        yield Proposal(words, (patch(manifest.key, body),))


def _of_nodes(
    moment: Moment, written: Written, record: PodRecord, refused: set[str]
) -> Iterator[Proposal]:
    """Words of the pod that keep it from nodes with room for it."""
    if "Nodes" not in refused:
        return
    engine, spec = moment.engine, written.spec
    roomy, by_node = engine.roomy_nodes(record.pod.uid), engine.node_refusals(record.pod.uid)
    plugins = {by_node[node] for node in roomy if node in by_node}
    affinity = spec.get("affinity") or {}
    if "NodeAffinity" in plugins:
        nodes = sorted(node for node in roomy if by_node.get(node) == "NodeAffinity")
        yield from _selectors(moment, written, nodes)
        if affinity.get("nodeAffinity"):
            step = _patched(written, {"affinity": {"nodeAffinity": None}})
            yield Proposal("remove its node affinity", (step,))
    if "TaintToleration" in by_node.values():
        tainted = [node for node, plugin in by_node.items() if plugin == "TaintToleration"]
        yield from _tolerations(moment, written, sorted(tainted, key=lambda n: (n not in roomy, n)))
    if "InterPodAffinity" in plugins:
        for field, words in (
            ("podAntiAffinity", "pod anti-affinity"),
            ("podAffinity", "pod affinity"),
        ):
            if affinity.get(field):
                step = _patched(written, {"affinity": {field: None}})
                yield Proposal(f"remove its {words}", (step,))
    if "PodTopologySpread" in plugins and spec.get("topologySpreadConstraints"):
        step = _patched(written, {"topologySpreadConstraints": None})
        yield Proposal("remove its topology spread constraints", (step,))


def _tolerations(moment: Moment, written: Written, nodes: list[str]) -> Iterator[Proposal]:
    """With a toleration of the taints of a node that users have tainted, the first of a kind."""
    objects, seen = moment.simulation.world.mirror.store.objects, list[list[Body]]()
    before = written.spec.get("tolerations") or []
    for name in nodes:
        node = objects.get(("Node", "", name))
        taints = (node.body.get("spec") or {}).get("taints") or [] if node is not None else []
        hard = [each for each in taints if each.get("effect") != "PreferNoSchedule"]
        states = any(str(each.get("key")).startswith("node.kubernetes.io/") for each in hard)
        if not hard or states or hard in seen or len(seen) == _MOST_TAINTS:
            continue
        seen.append(hard)
        more = [_toleration(each) for each in hard]
        words = ", ".join(str(each["key"]) for each in more)
        step = _patched(written, {"tolerations": [*fresh(before), *more]})
        yield Proposal(f"let it tolerate the taint {words}, as of node {name}", (step,))


def _toleration(taint: Body) -> Body:
    value = {"operator": "Equal", "value": taint["value"]} if taint.get("value") else {}
    return {"key": taint.get("key"), **(value or {"operator": "Exists"}), "effect": taint["effect"]}


def _selectors(moment: Moment, written: Written, nodes: list[str]) -> Iterator[Proposal]:
    """Without the labels of its node selector that the node with the fewest others lacks."""
    selector = written.spec.get("nodeSelector") or {}
    objects, best = moment.simulation.world.mirror.store.objects, None
    for node in nodes:
        found = objects.get(("Node", "", node))
        if found is None:
            continue
        labels = found.body.get("metadata", {}).get("labels") or {}
        lacking = [key for key, value in selector.items() if labels.get(key) != value]
        if lacking and (best is None or len(lacking) < len(best[0])):
            best = lacking, {key: labels.get(key) for key in lacking}
    if best is None:
        return
    lacking, instead = best
    words = ", ".join(f"{key}={selector[key]}" for key in lacking)
    step = _patched(written, {"nodeSelector": dict.fromkeys(lacking)})
    yield Proposal(f"remove {words} from its node selector", (step,))
    if all(value is not None for value in instead.values()):
        told = ", ".join(f"{key}={value}" for key, value in instead.items())
        step = _patched(written, {"nodeSelector": instead})
        yield Proposal(f"change its node selector to {told}", (step,))


def _smaller(
    moment: Moment, written: Written, record: PodRecord, explanation: Explanation
) -> Iterator[Proposal]:
    """The request lowered to what the gates and the nodes would let start."""
    if len(explanation.pods) > 1 and written.is_pod:
        return
    requests, most = dict(record.pod.shape.requests), dict[str, int]()
    for gate in explanation.gates:
        for figure in gate.figures if not gate.passes else ():
            if figure.beyond > 0 and figure.resource in requests:
                beyond = -(-figure.beyond // len(explanation.pods))
                left = requests[figure.resource] - beyond
                most[figure.resource] = min(left, most.get(figure.resource, left))
    if any(gate.gate == "Nodes" and not gate.passes for gate in explanation.gates):
        free = moment.engine.most_free(record.pod.uid)
        for name, amount in free.items():
            if amount < requests[name]:
                most[name] = min(amount, most.get(name, amount))
    if not most or any(amount <= 0 for amount in most.values()):
        return
    containers = fresh(written.spec.get("containers") or [])
    for name, amount in most.items():
        if not _lower(containers, name, requests[name] - amount):
            return
    words = ", ".join(
        f"{quantity.text(name, requests[name])} to {quantity.text(name, amount)} {name}"
        for name, amount in most.items()
    )
    step = _patched(written, {"containers": containers})
    yield Proposal(f"lower its request from {words}", (step,), lowers=True)


def _lower(containers: list[Any], name: str, by: int) -> bool:
    """Lower what the containers request, the largest first; was there enough to lower?"""
    asked: list[tuple[int, dict[str, Any]]] = []
    for container in containers:
        resources = container.get("resources") or {}
        written = (resources.get("requests") or {}).get(
            name, (resources.get("limits") or {}).get(name)
        )
        if written is not None:
            asked.append((quantity.amount(name, str(written)), resources))
    for amount, resources in sorted(asked, key=lambda pair: -pair[0]):
        off = min(by, amount)
        by -= off
        for field in ("requests", "limits"):
            figures = resources.get(field) or {}
            if name in figures and (field == "requests" or _must_match(name)):
                figures[name] = quantity.text(name, amount - off)
        if name not in (resources.get("requests") or {}):
            resources.setdefault("requests", {})[name] = quantity.text(name, amount - off)
            if _must_match(name):
                resources["limits"][name] = quantity.text(name, amount - off)
    return by == 0


def _must_match(name: str) -> bool:
    """Must request and limit be equal? So it is for extended resources."""
    return "/" in name


def _priorities(moment: Moment, written: Written, record: PodRecord) -> Iterator[Proposal]:
    """Priority classes above the pod's; none of those that are meant for the system's own pods."""
    objects = moment.simulation.world.mirror.store.objects
    classes = sorted(
        (each.body.get("value", 0), each.name)
        for each in objects.values()
        if each.kind == "PriorityClass"
    )
    above = [name for value, name in classes if record.pod.priority < value < CRITICAL_PRIORITY]
    for name in dict.fromkeys([*above[:1], *above[-1:]][:_MOST_CLASSES]):
        step = _patched(written, {"priorityClassName": name, "priority": None})
        yield Proposal(f"give it the priority class {name}", (step,))


def _anywhere(moment: Moment, record: PodRecord) -> Iterator[Proposal]:
    """A gang that need not be near each other, where its PodGroup or its job asks for that."""
    objects, name = moment.simulation.world.mirror.store.objects, record.pod.gang or ""
    namespace, _, bare = name.partition("/")
    holders = [objects.get(key) for key in (("PodGroup", namespace, bare), record.owner) if key]
    for holder in holders:
        if holder is None:
            continue
        words = f"let gang {name} start on any nodes"
        if (holder.body.get("spec") or {}).get("networkTopology"):
            yield Proposal(words, (patch(holder.key, {"spec": {"networkTopology": None}}),))
        elif REQUIRED in (holder.metadata.annotations or {}):
            body = {"metadata": {"annotations": {REQUIRED: None}}}
            yield Proposal(words, (patch(holder.key, body),))


def _gang(moment: Moment, record: PodRecord, explanation: Explanation) -> Iterator[Proposal]:
    """A gang that starts with the pods that are there."""
    mirror, name = moment.simulation.world.mirror, record.pod.gang or ""
    objects = mirror.store.objects
    namespace, _, bare = name.partition("/")
    group = objects.get(("PodGroup", namespace, bare))
    there = [each for each in mirror.records.values() if each.alive and each.pod.gang == name]
    if not there:
        return
    words = f"let gang {name} start with {len(there)} pods"
    if group is not None:
        yield Proposal(words, (patch(group.key, {"spec": {"minMember": len(there)}}),))
        return
    first = min(there, key=lambda each: (each.pod.created, each.pod.uid))
    oldest = objects.get(pod_key(first.pod.path))
    written = (oldest.metadata.annotations or {}) if oldest is not None else {}
    if oldest is not None and declared_gangs.MIN_AVAILABLE in written:
        body = {"metadata": {"annotations": {declared_gangs.MIN_AVAILABLE: str(len(there))}}}
        yield Proposal(words, (patch(oldest.key, body),))
