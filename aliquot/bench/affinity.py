"""`aliquot bench affinity`: pods that all have rules about each other.

Every pod must not run on a node with another pod of its app, and the pods of an app are spread over
zones. Each start changes what the next pod of the app may do, so nothing of a verdict can be kept
but the counts.
"""

import random
import time
from collections.abc import Callable

from aliquot.bench.figure import Figure
from aliquot.engine import (
    AffinityTerm,
    Bind,
    Engine,
    Event,
    Node,
    NodeSet,
    Pod,
    PodRules,
    PodSelector,
    PodSet,
    Quota,
    QuotaSet,
    Requirement,
    Shape,
    SpreadConstraint,
)

_ZONE, _HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_ZONES = 3
_APPS = 100
_GIB = 2**30
_ROUNDS = 3
"""Rounds, of which the best counts: the others were disturbed."""


def affinity(progress: Callable[[str], None]) -> list[Figure]:
    """Decisions for pods with anti-affinity to their own kind, and a zone spread."""
    best: dict[int, tuple[float, int]] = {}
    for nodes, pods in ((500, 2_000), (5_000, 20_000)):
        for _ in range(_ROUNDS):
            progress(f"affinity: {nodes:,} nodes, {pods:,} pods")
            best[nodes] = min(best.get(nodes, (float("inf"), 0)), _decide(nodes, pods, rules=True))
    progress("affinity: the same without rules")
    plain, _ = min(_decide(5_000, 20_000, rules=False) for _ in range(_ROUNDS))
    cost, started = best[5_000]
    return [
        Figure(
            "decided, of 20,000 pods with rules on 5,000 nodes", 1e6 / cost, "pods/s", ">= 5,000"
        ),
        Figure("one decision on 5,000 nodes", cost, "us"),
        Figure("the same without rules", plain, "us"),
        Figure("growth from 500 to 5,000 nodes", cost / best[500][0], "x"),
        Figure("pods started", started, "pods"),
    ]


def _decide(nodes: int, pods: int, rules: bool) -> tuple[float, int]:
    """Microseconds for each pod of one cycle, and how many have started."""
    engine = Engine("capacity")
    for event in _cluster(nodes, pods, rules):
        engine.apply(event)
    begin = time.perf_counter()
    decided = engine.cycle()
    took = time.perf_counter() - begin
    return took * 1e6 / pods, sum(isinstance(each, Bind) for each in decided)


def _cluster(nodes: int, pods: int, rules: bool) -> list[Event]:
    """Nodes in three zones, quotas for all, and the pods of many apps, mixed."""
    has = (("cpu", 96_000), ("memory", 1024 * _GIB), ("pods", 110))
    events: list[Event] = []
    for i in range(nodes):
        labels = ((_HOSTNAME, f"node-{i}"), (_ZONE, f"zone-{i % _ZONES}"))
        events.append(NodeSet(Node(f"node-{i}", has, labels)))
    low = (("cpu", 96_000 * nodes // _APPS),)
    for app in range(_APPS):
        name = f"team-{app}"
        events.append(QuotaSet(Quota(f"{name}/q", low, low, namespaces=frozenset({name}))))
    order = [i % _APPS for i in range(pods)]
    random.Random(nodes).shuffle(order)
    for number, app in enumerate(order):
        events.append(PodSet(_pod(number, app, rules)))
    return events


def _pod(number: int, app: int, rules: bool) -> Pod:
    namespace, labels = f"team-{app}", (("app", f"app-{app}"),)
    shape = Shape((("cpu", 1_000), ("memory", 4 * _GIB), ("pods", 1)))
    pod = Pod(f"u{number}", namespace, f"pod-{number}", shape, created=number, labels=labels)
    return _with_rules(pod) if rules else pod


def _with_rules(pod: Pod) -> Pod:
    same = tuple(Requirement(key, "In", (value,)) for key, value in pod.labels)
    alike = PodSelector((pod.namespace,), None, same)
    rules = PodRules(
        anti_affinity=(AffinityTerm(alike, _HOSTNAME),),
        spread=(SpreadConstraint(alike, _ZONE),),
    )
    return Pod(
        *(pod.uid, pod.namespace, pod.name, pod.shape),
        created=pod.created,
        labels=pod.labels,
        rules=rules,
    )
