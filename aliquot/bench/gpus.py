"""GPU devices, measured: pods that ask for fractions of GPUs, on up to 8,000 cards."""

import gc
import random
import time
from collections.abc import Callable, Iterator

from aliquot.bench.figure import Figure
from aliquot.collector import tune_collector
from aliquot.engine import (
    Bind,
    Device,
    DeviceSet,
    Engine,
    Event,
    GpuAmount,
    GpuAsk,
    GpuBound,
    GpuQuota,
    GpuQuotaSet,
    Node,
    NodeSet,
    Pod,
    PodSet,
    Shape,
)

_GIB = 2**30
_CARDS = 8
"""GPUs of a node, as in an HGX or DGX server."""
_TEAMS = 50
_ASKS = 50
"""Distinct requests: those of a platform that offers sizes to choose from."""
_MANY_ASKS = 1_000
"""Those of tenants who write what they like: most pods ask for what no pod did lately."""
_ROUNDS = 3
"""Runs of each measurement; the best counts, as the others were disturbed."""


def gpu(progress: Callable[[str], None]) -> list[Figure]:
    """20,000 pods that ask for fractions of GPUs, on 1,000 nodes with eight GPUs each."""
    taken: dict[int, tuple[float, int, float]] = {}
    for nodes in (100, 1_000):
        progress(f"devices of {nodes} nodes, {20 * nodes} pods")
        taken[nodes] = min(_run(nodes, 20 * nodes, _ASKS) for _ in range(_ROUNDS))
    progress(f"devices of 1000 nodes, 20000 pods of {_MANY_ASKS} asks")
    many, _, _ = min(_run(1_000, 20_000, _MANY_ASKS) for _ in range(_ROUNDS))
    cost, started, intake = taken[1_000]
    return [
        Figure("allocated, of 20,000 pods on 8,000 cards", 1e6 / cost, "pods/s", ">= 15,000"),
        Figure("the same with 1,000 distinct asks", 1e6 / many, "pods/s", ">= 5,000"),
        Figure("one allocation on 8,000 cards", cost, "us"),
        Figure("one allocation on 800 cards", taken[100][0], "us"),
        Figure("growth from 800 to 8,000 cards", cost / taken[100][0], "x"),
        Figure("pods started", started, "pods"),
        Figure("taking in one pod's event, before that", intake, "us"),
    ]


def _run(nodes: int, pods: int, asks: int) -> tuple[float, int, float]:
    """Microseconds of an allocation; pods started; microseconds of the intake of a pod."""
    engine = Engine("capacity")
    for event in _cluster(nodes):
        engine.apply(event)
    arriving = list(_pods(pods, asks))
    tune_collector()
    begin = time.perf_counter()
    for event in arriving:
        engine.apply(event)
    here = time.perf_counter()
    decided = engine.cycle()
    end = time.perf_counter()
    gc.unfreeze()
    started = sum(isinstance(decision, Bind) for decision in decided)
    return (end - here) * 1e6 / pods, started, (here - begin) * 1e6 / pods


def _cluster(nodes: int) -> Iterator[Event]:
    has = (("cpu", 128_000), ("memory", 1024 * _GIB), ("pods", 250))
    card = GpuAmount(312_000, 80 * _GIB)
    for number in range(nodes):
        yield NodeSet(Node(f"node-{number}", has))
        for index in range(_CARDS):
            name = f"node-{number}-gpu-{index}"
            yield DeviceSet(Device(name, f"node-{number}", card, model="A100", index=index))
    for team in range(_TEAMS):
        total = GpuBound(8 * nodes * card.tflops, 8 * nodes * card.vram)
        yield GpuQuotaSet(GpuQuota(f"team-{team}", "q", total, total, 10_000))


def _pods(count: int, asks: int) -> Iterator[Event]:
    rng = random.Random(count)
    shapes = [_shape(rng) for _ in range(asks)]
    for number in range(count):
        name, team = f"pod-{number}", f"team-{number % _TEAMS}"
        yield PodSet(Pod(f"uid-{number}", team, name, rng.choice(shapes), created=number))


def _shape(rng: random.Random) -> Shape:
    amount = GpuAmount(1000 * rng.randint(5, 100), _GIB * rng.randint(2, 24))
    ask = GpuAsk(amount, amount, count=rng.choice((1, 1, 1, 1, 2)))
    return Shape((("cpu", 500), ("memory", _GIB), ("pods", 1)), gpu=ask)
