"""The budgets, measured: what `aliquot bench` runs.

Machines differ and are shared, so each absolute figure stands beside a yardstick taken in the same
run, and growth is a ratio within it. The garbage collector is told off as in every command.
"""

import gc
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from aliquot.cluster.memory import calm_collector
from aliquot.engine.cycle import Engine
from aliquot.engine.decisions import Bind
from aliquot.engine.events import Event, NodeSet, PodSet, QuotaSet
from aliquot.engine.objects import Node, Pod, Quota, Shape

GPU = "nvidia.com/gpu"
_GIB = 2**30
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure, and the budget it is held against, if there is one."""

    what: str
    value: float
    unit: str
    budget: str = ""
    """A bound, such as `>= 20,000`; empty if there is none."""

    @property
    def met(self) -> bool | None:
        """Is it within the budget? None if there is none."""
        if not self.budget:
            return None
        sign, bound = self.budget.split()
        limit = float(bound.replace(",", ""))
        return self.value >= limit if sign == ">=" else self.value <= limit


def decisions(progress: Callable[[str], None]) -> list[Figure]:
    """Decide on 50,000 waiting pods of 50 shapes in 100 quotas; ten pods a node."""
    best: dict[int, tuple[float, float, int]] = {}
    for count in (500, 5_000):
        progress(f"decisions on {count} nodes, {10 * count} pods")
        best[count] = min(_decide(count) for _ in range(_ROUNDS))
    progress("the bare fit")
    fit = _bare_fit(5_000)
    cost, intake, started = best[5_000]
    growth, rate = cost / best[500][0], 1e6 / cost
    return [
        Figure("decided, of 50,000 waiting pods on 5,000 nodes", rate, "pods/s", ">= 20,000"),
        Figure("one decision on 5,000 nodes", cost, "us"),
        Figure("one decision on 500 nodes", best[500][0], "us"),
        Figure("growth from 500 to 5,000 nodes", growth, "x", "<= 2"),
        Figure("one bare numpy fit over 5,000 nodes", fit, "us"),
        Figure("a decision, in bare fits", cost / fit, "x"),
        Figure("taking in one pod's event, before that", intake, "us"),
        Figure("pods started", started, "pods"),
    ]


BENCHMARKS: dict[str, Callable[[Callable[[str], None]], list[Figure]]] = {"decisions": decisions}


def as_json(figures: list[Figure]) -> list[dict[str, Any]]:
    """Figures as plain data."""
    return [{**asdict(figure), "met": figure.met} for figure in figures]


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


def _shape(rng: random.Random) -> Shape:
    gpus = rng.choice((0, 0, 0, 0, 0, 1, 1, 1, 2, 4))
    requests = [("cpu", 1000 * rng.randint(1, 12)), ("memory", _GIB * rng.randint(2, 96))]
    return Shape(tuple(sorted([*requests, *([(GPU, gpus)] if gpus else []), ("pods", 1)])))


def _decide(nodes: int) -> tuple[float, float, int]:
    """Microseconds to decide on a pod, and to take in its event; and how many started."""
    events = flat_cluster(nodes, 10 * nodes)
    engine = Engine("capacity")
    arriving = [event for event in events if isinstance(event, PodSet)]
    for event in events[: len(events) - len(arriving)]:
        engine.apply(event)
    calm_collector()
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
    """Microseconds of the least that any scheduler must do: compare, and pick the fullest node."""
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
