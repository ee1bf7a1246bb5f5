"""The engine, measured: decisions, preemption and reclaim in clusters of 5,000 nodes.

Machines differ and are shared, so each absolute figure has a yardstick from the same run, and
growth is a ratio within one run. The garbage collector is frozen as in every command (`collector`).
"""

import gc
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from aliquot.bench.affinity import affinity
from aliquot.bench.blowups import blowups
from aliquot.bench.figure import Figure
from aliquot.bench.gangs import gangs
from aliquot.bench.gpus import gpu
from aliquot.bench.queues import queues
from aliquot.bench.reservations import reservations
from aliquot.bench.shares import share
from aliquot.collector import tune_collector
from aliquot.engine import (
    MODEL_PREFIX,
    Bind,
    Decision,
    Engine,
    Event,
    Evict,
    Node,
    NodePool,
    NodeSet,
    Pod,
    PodGone,
    PodSet,
    Quota,
    QuotaSet,
    Requirement,
    Shape,
    Tree,
    TreeSet,
    binds_and_evictions,
)

GPU = "nvidia.com/gpu"
_GIB = 2**30
_ROUNDS = 3
"""Runs of each measurement; the best counts, as the others were disturbed."""
_TREES = 10
"""Trees with nodes of their own: more than clusters have, which have a few pools."""
_CLAIMS = 200
"""Reclaim decisions measured: enough for a p99."""


def decisions(progress: Callable[[str], None]) -> list[Figure]:
    """Decide on 50,000 waiting pods of 50 shapes; ten pods a node. Flat quotas, then a tree."""
    best: dict[int, tuple[float, float, int]] = {}
    for count in (500, 5_000):
        progress(f"decisions on {count} nodes, {10 * count} pods")
        best[count] = min(_decide(flat_cluster(count, 10 * count)) for _ in range(_ROUNDS))
    tree: dict[int, float] = {}
    for fan_out in (2, 10):
        progress(f"decisions in a tree of {fan_out**3} quotas")
        events = tree_cluster(5_000, 50_000, fan_out)
        tree[fan_out] = min(_decide(events, "hierarchy") for _ in range(2))[0]
    progress("decisions in ten trees of 100 quotas, each with 500 nodes of its own")
    alike = in_trees(tree_cluster(5_000, 50_000, 10), 1), in_trees(events, _TREES)
    trees = _against(*alike, "hierarchy")
    progress("decisions with four GPU models")
    flat = flat_cluster(5_000, 50_000), by_models(flat_cluster(5_000, 50_000))
    models = _against(*flat)
    progress("the bare fit")
    fit = _bare_fit(5_000)
    cost, intake, started = best[5_000]
    growth, rate = cost / best[500][0], 1e6 / cost
    return [
        Figure("decided, of 50,000 waiting pods on 5,000 nodes", rate, "pods/s", ">= 40,000"),
        Figure("one decision on 5,000 nodes", cost, "us"),
        Figure("one decision on 500 nodes", best[500][0], "us"),
        Figure("5,000 pods on 500 nodes, more than fit, at once", best[500][0] / 200, "s", "<= 5"),
        Figure("growth from 500 to 5,000 nodes", growth, "x", "<= 2"),
        Figure("one bare numpy fit over 5,000 nodes", fit, "us"),
        Figure("a decision, in bare fits", cost / fit, "x"),
        Figure("taking in one pod's event, before that", intake, "us"),
        Figure("pods started", started, "pods"),
        Figure(
            "decided in a tree of 1,000 quotas on 3 levels", 1e6 / tree[10], "pods/s", ">= 25,000"
        ),
        Figure("growth from a tree of 8 quotas to one of 1,000", tree[10] / tree[2], "x", "<= 2"),
        Figure("growth from one tree to ten with nodes of their own", trees, "x", "<= 1.2"),
        Figure("a decision with quotas by four GPU models, in decisions", models, "x", "<= 1.2"),
    ]


def _against(plain: list[Event], other: list[Event], policy: str = "capacity") -> float:
    """The cost of a decision in the other cluster, in that of one in the plain one.

    By turns in one run, of processor time: the machine may be shared.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(_ROUNDS):
        for events, found in zip((plain, other), times, strict=True):
            begin = time.process_time()
            _decide(events, policy)
            found.append(time.process_time() - begin)
    return min(times[1]) / min(times[0])


def preempt(progress: Callable[[str], None]) -> list[Figure]:
    """One reclaim decision at a time, in a full cluster of 50,000 pods."""
    progress("preempt: 5,000 nodes, 50,000 pods")
    engine, teams = _lent_out(nodes=5_000, quotas=200, cpu_pods=10_000)
    times = []
    for number in range(_CLAIMS):
        claim = _reclaiming_pod(number, teams[number % len(teams)], gpus=(1, 2, 4)[number % 3])
        engine.apply(PodSet(claim))
        begin = time.perf_counter()
        decided = engine.cycle()
        times.append((time.perf_counter() - begin) * 1e3)
        _apply(engine, decided)
        _apply(engine, engine.cycle())
    times.sort()
    return [
        Figure("a reclaim decision, median", times[len(times) // 2], "ms"),
        Figure("a reclaim decision, p99", times[int(len(times) * 0.99)], "ms", "<= 8"),
        Figure("the slowest of them", times[-1], "ms", "<= 30"),
        Figure("reclaim decisions measured", len(times), ""),
    ]


def reclaim(progress: Callable[[str], None]) -> list[Figure]:
    """4,000 pods of quotas within their min reclaim from 4,000 borrowing pods on 500 nodes."""
    progress("reclaim: 500 nodes, 4,000 owners' pods against 4,000 borrowers'")
    engine, teams = _lent_out(nodes=500, quotas=20, cpu_pods=0)
    for number in range(4_000):
        engine.apply(PodSet(_reclaiming_pod(number, teams[number % len(teams)], gpus=1)))
    begin = time.perf_counter()
    started = evicted = 0
    while decided := list(binds_and_evictions(engine.cycle())):
        started += sum(isinstance(decision, Bind) for decision in decided)
        evicted += sum(isinstance(decision, Evict) for decision in decided)
        _apply(engine, decided)
    took = time.perf_counter() - begin
    return [
        Figure("all decisions", took, "s", "<= 1"),
        Figure("pods evicted", evicted, "pods"),
        Figure("pods started", started, "pods"),
    ]


BENCHMARKS: dict[str, Callable[[Callable[[str], None]], list[Figure]]] = {
    "decisions": decisions,
    "affinity": affinity,
    "preempt": preempt,
    "reclaim": reclaim,
    "share": share,
    "queues": queues,
    "gpu": gpu,
    "gangs": gangs,
    "reservations": reservations,
    "blowups": blowups,
}


def flat_cluster(nodes: int, pods: int, quotas: int = 100, shapes: int = 50) -> list[Event]:
    """A cluster of equal GPU nodes, quotas that share it evenly, and pods that nearly fill it."""
    rng = random.Random(nodes)
    kinds = [_shape(rng) for _ in range(shapes)]
    has = (("cpu", 96_000), ("memory", 1024 * _GIB), (GPU, 8), ("pods", 110))
    events: list[Event] = [NodeSet(Node(f"node-{i}", has)) for i in range(nodes)]
    for i in range(quotas):
        low = (("cpu", 96_000 * nodes // quotas), (GPU, 8 * nodes // quotas))
        high = tuple((resource, 2 * amount) for resource, amount in low)
        events.append(
            QuotaSet(Quota(f"team-{i}/q", low, high, namespaces=frozenset({f"team-{i}"})))
        )
    for i in range(pods):
        pod = Pod(
            uid=f"uid-{i}",
            namespace=f"team-{rng.randrange(quotas)}",
            name=f"pod-{i}",
            shape=rng.choice(kinds),
            priority=rng.choice((0, 0, 0, 100)),
            created=i,
        )
        events.append(PodSet(pod))
    return events


def by_models(events: list[Event], models: Sequence[str] = ("a", "b", "c", "d")) -> list[Event]:
    """The same cluster with cards of several models: each quota has mins and maxes of all."""
    names, found, count = [f"{MODEL_PREFIX}{each}" for each in models], list[Event](), 0
    for event in events:
        if isinstance(event, NodeSet):
            model, node = names[count % len(names)], event.node
            count += 1
            has = (*node.allocatable, (model, dict(node.allocatable)[GPU]))
            event = NodeSet(replace(node, allocatable=has, models=((GPU, model),)))
        elif isinstance(event, QuotaSet):
            low, high = dict(event.quota.min), dict(event.quota.max)
            lows = tuple((name, low[GPU] // len(names)) for name in names)
            highs = tuple((name, high[GPU]) for name in names)
            named = (*low.items(), *lows), (*high.items(), *highs)
            event = QuotaSet(replace(event.quota, min=named[0], max=named[1]))
        found.append(event)
    return found


def tree_cluster(nodes: int, pods: int, fan_out: int) -> list[Event]:
    """The same with quotas on three levels, each quota with `fan_out` children."""
    leaves = fan_out**3
    events = flat_cluster(nodes, pods, leaves)
    above: list[Event] = []
    for level in (1, 2):
        count = fan_out**level
        low = (("cpu", 96_000 * nodes // count), (GPU, 8 * nodes // count))
        for i in range(count):
            parent = None if level == 1 else f"top-{i % fan_out}"
            name = f"top-{i}" if level == 1 else f"mid-{i}"
            above.append(QuotaSet(Quota(name, low, (), parent=parent, is_parent=True)))
    below = [
        QuotaSet(replace(event.quota, parent=f"mid-{number % fan_out**2}"))
        for number, event in enumerate(each for each in events if isinstance(each, QuotaSet))
    ]
    first = [event for event in events if isinstance(event, NodeSet)]
    return [*first, *above, *below, *(event for event in events if isinstance(event, PodSet))]


def in_trees(events: list[Event], trees: int) -> list[Event]:
    """The same cluster, its nodes and first-level quotas parted among so many trees."""
    pools: list[Event] = [
        TreeSet(Tree(f"t{i}", (NodePool((Requirement("pool", "In", (f"t{i}",)),)),)))
        for i in range(trees)
    ]
    count = 0
    for event in events:
        if isinstance(event, NodeSet):
            labels = (("pool", f"t{count % trees}"),)
            count += 1
            pools.append(NodeSet(replace(event.node, labels=labels)))
        elif isinstance(event, QuotaSet) and event.quota.parent is None:
            number = int(event.quota.name.rpartition("-")[2])
            pools.append(QuotaSet(replace(event.quota, tree=f"t{number % trees}")))
        else:
            pools.append(event)
    return pools


def _lent_out(nodes: int, quotas: int, cpu_pods: int) -> tuple[Engine, list[str]]:
    """A full cluster: half of the quotas use all GPUs, the other half, the lenders, none."""
    has = (("cpu", 96_000), ("memory", 1024 * _GIB), (GPU, 8), ("pods", 110))
    engine = Engine("capacity")
    rng = random.Random(nodes)
    for i in range(nodes):
        engine.apply(NodeSet(Node(f"node-{i}", has)))
    teams = [f"team-{i}" for i in range(quotas)]
    for team in teams:
        low = ((GPU, 8 * nodes // quotas),)
        engine.apply(QuotaSet(Quota(f"{team}/q", low, namespaces=frozenset({team}))))
    one = Shape((("cpu", 2_000), ("memory", 4 * _GIB), (GPU, 1), ("pods", 1)))
    plain = Shape((("cpu", 1_000), ("memory", 2 * _GIB), ("pods", 1)))
    for i in range(8 * nodes + cpu_pods):
        pod = Pod(
            uid=f"run-{i}",
            namespace=teams[i % (quotas // 2)],
            name=f"run-{i}",
            shape=one if i < 8 * nodes else plain,
            priority=rng.choice((0, 0, 10)),
            created=rng.randrange(10**6),
            node=f"node-{i % nodes}",
        )
        engine.apply(PodSet(pod))
    engine.cycle()
    tune_collector()
    return engine, teams[quotas // 2 :]


def _reclaiming_pod(number: int, team: str, gpus: int) -> Pod:
    shape = Shape((("cpu", 1_000), ("memory", _GIB), (GPU, gpus), ("pods", 1)))
    return Pod(f"own-{number}", team, f"own-{number}", shape, created=10**6 + number)


def _apply(engine: Engine, decided: Sequence[Decision]) -> None:
    for decision in binds_and_evictions(decided):
        if isinstance(decision, Bind):
            engine.apply(PodSet(replace(decision.pod, node=decision.node)))
        else:
            engine.apply(PodGone(decision.pod.uid))


def _shape(rng: random.Random) -> Shape:
    gpus = rng.choice((0, 0, 0, 0, 0, 1, 1, 1, 2, 4))
    requests = [("cpu", 1000 * rng.randint(1, 12)), ("memory", _GIB * rng.randint(2, 96))]
    return Shape(tuple(sorted([*requests, *([(GPU, gpus)] if gpus else []), ("pods", 1)])))


def _decide(events: list[Event], policy: str = "capacity") -> tuple[float, float, int]:
    """Microseconds of a decision and of the intake of an event; pods started."""
    engine = Engine(policy)
    arriving = [event for event in events if isinstance(event, PodSet)]
    for event in events[: len(events) - len(arriving)]:
        engine.apply(event)
    tune_collector()
    begin = time.perf_counter()
    for event in arriving:
        engine.apply(event)
    waiting = time.perf_counter()
    decided = engine.cycle()
    end = time.perf_counter()
    gc.unfreeze()
    started = sum(isinstance(decision, Bind) for decision in decided)
    each = 1e6 / len(arriving)
    return (end - waiting) * each, (waiting - begin) * each, started


def _bare_fit(nodes: int) -> float:
    """Microseconds of the least that a scheduler must do: compare, and pick the fullest node."""
    free = np.random.default_rng(0).integers(0, 100, (4, nodes))
    ask = np.array([[1], [2], [3], [1]])

    def fit() -> int:
        fits = np.logical_and.reduce(free >= ask)
        return int(np.where(fits, 1000 - free[0], -1).argmax())

    times = []
    for _ in range(200):
        begin = time.perf_counter()
        fit()
        times.append(time.perf_counter() - begin)
    return sorted(times)[len(times) // 2] * 1e6
