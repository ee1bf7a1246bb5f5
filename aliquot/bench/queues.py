"""The policy `queues`, measured: turns of 100 queues whose jobs ask for more than the cluster."""

import gc
import time
from collections.abc import Callable, Iterator

from aliquot.bench.figure import Figure
from aliquot.collector import tune_collector
from aliquot.engine import (
    Bind,
    Engine,
    Event,
    Gang,
    GangSet,
    Node,
    NodeSet,
    Pod,
    PodSet,
    Quota,
    QuotaSet,
    Shape,
    WeightSet,
)

_GIB = 2**30
_NODES = 2_000
_PODS, _CORE = 10, 4
"""Pods of a job, and its minMember."""
_HAS = (("cpu", 64_000), ("memory", 512 * _GIB), ("nvidia.com/gpu", 8), ("pods", 110))


def queues(progress: Callable[[str], None]) -> list[Figure]:
    """Jobs of ten pods with minMember 4; fewer than half of them fit."""
    progress("100 queues x 100 namespaces x 5 jobs of 10 pods on 2,000 nodes")
    many = _run(queues=100, namespaces=100, jobs=5)
    progress("the same pods in one queue and one namespace")
    one = _run(queues=1, namespaces=1, jobs=50_000)
    pods, turns, intake, waiting = many
    return [
        Figure("started, of 500,000 pods in 100 queues", pods[0] / pods[1], "pods/s", ">= 15,000"),
        Figure("pods started", pods[0], "pods"),
        Figure("turns taken", turns, "turns"),
        Figure("one turn", pods[1] / turns * 1e6, "us"),
        Figure("one turn in one queue and one namespace", one[0][1] / one[1] * 1e6, "us"),
        Figure("growth from 1 to 10,000", pods[1] / turns * one[1] / one[0][1], "x"),
        Figure("the first look at what is left, with all others waiting", waiting * 1e3, "ms"),
        Figure("taking in one pod's event, before that", intake, "us"),
    ]


def _run(queues: int, namespaces: int, jobs: int) -> tuple[tuple[int, float], int, float, float]:
    """Pods started and the seconds it took, turns, microseconds of intake, seconds of a cycle."""
    engine = Engine("queues")
    for number in range(_NODES):
        engine.apply(NodeSet(Node(f"node-{number}", _HAS)))
    for number in range(queues):
        engine.apply(QuotaSet(Quota(f"queue-{number}", default_weight=number % 3 + 1, lend=False)))
    arriving = list(_jobs(queues, namespaces, jobs))
    tune_collector()
    begin = time.perf_counter()
    for event in arriving:
        engine.apply(event)
    here = time.perf_counter()
    decided = engine.cycle()
    end = time.perf_counter()
    engine.cycle()
    again = time.perf_counter()
    gc.unfreeze()
    started = [decision.pod for decision in decided if isinstance(decision, Bind)]
    by_gang: dict[str | None, int] = {}
    for pod in started:
        by_gang[pod.gang] = by_gang.get(pod.gang, 0) + 1
    turns = sum(1 + number - _CORE for number in by_gang.values())
    each = 1e6 / (queues * namespaces * jobs * _PODS)
    return (len(started), end - here), turns, (here - begin) * each, again - end


def _jobs(queues: int, namespaces: int, jobs: int) -> Iterator[Event]:
    shapes = [
        Shape((("cpu", 500), ("memory", _GIB), ("pods", 1))),
        Shape((("cpu", 1_000), ("memory", 4 * _GIB), ("pods", 1))),
        Shape((("cpu", 1_000), ("memory", 8 * _GIB), ("nvidia.com/gpu", 1), ("pods", 1))),
    ]
    for number in range(queues * namespaces):
        queue, namespace = f"queue-{number % queues}", f"team-{number}"
        yield WeightSet(namespace, number % 4 + 1)
        for job in range(jobs):
            gang = f"{namespace}/job-{job}"
            yield GangSet(Gang(gang, _CORE, quota=queue))
            for index in range(_PODS):
                name, shape = f"job-{job}-{index}", shapes[(number + job) % len(shapes)]
                uid = f"{namespace}/{name}"
                yield PodSet(Pod(uid, namespace, name, shape, created=job, quota=queue, gang=gang))
