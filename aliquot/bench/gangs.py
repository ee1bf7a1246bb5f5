"""`aliquot bench gangs`: gangs that must each run in one rack, on idle nodes and by preemption.

1,000 gangs of 8 pods with 8 GPUs each come to 5,000 nodes of 8 GPUs in 160 racks, which hold 3 or 4
gangs each: first all at once, then one by one. Then again on nodes full of small pods of a quota
that borrows all of it, so that victims are to be found in one rack. Times are of the CPU: another
process beside this one is no part of them.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from aliquot.bench.figure import Figure
from aliquot.engine import (
    Bind,
    Decision,
    Engine,
    Evict,
    Gang,
    GangSet,
    Node,
    NodeSet,
    Pod,
    PodGone,
    PodSet,
    Quota,
    QuotaSet,
    Shape,
    Topology,
    binds_and_evictions,
)

GPU, RACK = "nvidia.com/gpu", "example.com/rack"
NODES, RACKS, GANGS = 5_000, 160, 1_000
_CARDS, _PODS = 8, 8
_SMALL = 2
"""GPUs of a small pod: four of them fill a node, so that each victim set is a choice."""
_SECOND = 1_000_000_000


def gangs(progress: Callable[[str], None]) -> list[Figure]:
    """Decisions for gangs with hard topology: on idle nodes, and on full ones."""
    progress(f"gangs: {GANGS:,} at once")
    at_once, started = _at_once()
    progress("gangs: one by one")
    idle, idle_started = _one_by_one(full=False)
    progress("gangs: one by one, on full nodes")
    full, full_started = _one_by_one(full=True)
    return [
        Figure(f"all decisions, {GANGS:,} gangs at once", at_once, "s CPU", "<= 10"),
        Figure("gangs started of these", started, "gangs"),
        *_figures("one by one", idle, idle_started),
        *_figures("one by one, by preemption", full, full_started),
    ]


def _figures(what: str, took: list[float], started: int) -> list[Figure]:
    in_order = sorted(took)
    p99 = in_order[len(in_order) * 99 // 100] * 1e3
    return [
        Figure(f"all decisions, {what}", sum(took), "s CPU", "<= 10"),
        Figure(f"one decision, {what}: median", in_order[len(in_order) // 2] * 1e3, "ms"),
        Figure(f"one decision, {what}: p99", p99, "ms", "<= 50"),
        Figure(f"gangs started, {what}", started, "gangs"),
    ]


def _at_once() -> tuple[float, int]:
    """Seconds of one cycle for all gangs, and how many of them started."""
    engine = _cluster(full=False)
    for number in range(GANGS):
        _come(engine, number)
    begin = time.process_time()
    decisions = engine.cycle(_SECOND)
    took = time.process_time() - begin
    return took, sum(isinstance(each, Bind) for each in decisions) // _PODS


def _one_by_one(full: bool) -> tuple[list[float], int]:
    """Seconds until each gang was decided, its victims gone and its pods bound; how many were."""
    engine, took, started = _cluster(full), [], 0
    for number in range(GANGS):
        _come(engine, number)
        spent = 0.0
        while True:
            begin = time.process_time()
            decisions = engine.cycle((number + 1) * _SECOND)
            spent += time.process_time() - begin
            bound, gone = _carry_out(engine, binds_and_evictions(decisions))
            started += bound // _PODS
            if not gone:
                break
        took.append(spent)
    return took, started


def _carry_out(engine: Engine, decisions: Iterable[Decision]) -> tuple[int, int]:
    """Let decisions come true at once; how many pods are bound, and how many gone."""
    bound = gone = 0
    for each in decisions:
        if isinstance(each, Bind):
            engine.apply(PodSet(replace(each.pod, node=each.node)))
            bound += 1
        elif isinstance(each, Evict):
            engine.apply(PodGone(each.pod.uid))
            gone += 1
    return bound, gone


def _cluster(full: bool) -> Engine:
    engine = Engine("capacity")
    every = (((GPU), NODES * _CARDS),)
    engine.apply(QuotaSet(Quota("owners/q", every, namespaces=frozenset({"owners"}))))
    engine.apply(QuotaSet(Quota("borrowers/q", (), namespaces=frozenset({"borrowers"}))))
    has = ((GPU, _CARDS), ("cpu", 96_000), ("memory", 2**40), ("pods", 110))
    for number in range(NODES):
        labels = ((RACK, f"rack-{number % RACKS:03}"),)
        engine.apply(NodeSet(Node(f"node-{number:04}", has, labels)))
    small = Shape(((GPU, _SMALL), ("cpu", 8_000), ("memory", 2**34), ("pods", 1)))
    for number in range(NODES * _CARDS // _SMALL if full else 0):
        node = f"node-{number % NODES:04}"
        pod = Pod(f"s{number}", "borrowers", f"small-{number}", small, created=number, node=node)
        engine.apply(PodSet(pod))
    engine.cycle()
    return engine


def _come(engine: Engine, number: int) -> None:
    """A gang and its pods come."""
    name = f"owners/gang-{number}"
    engine.apply(GangSet(Gang(name, _PODS, created=number, topology=Topology((RACK,)))))
    shape = Shape(((GPU, _CARDS), ("cpu", 64_000), ("memory", 2**38), ("pods", 1)))
    for index in range(_PODS):
        path = f"gang-{number}-{index}"
        engine.apply(PodSet(Pod(path, "owners", path, shape, created=number, gang=name)))
