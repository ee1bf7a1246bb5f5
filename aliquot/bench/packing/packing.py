"""`aliquot bench packing`: how much of all cards is in use once pods ask for more than there is.

Pods are drawn until they ask for 1.3 times all cards; each comes alone and stays, whether it starts
or not. The engine's placements and the reference rules pack the same draws.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from aliquot.bench.figure import Figure
from aliquot.bench.packing import rules
from aliquot.bench.packing.workload import CARD, Workload, asked_parts, made_up, of_trace
from aliquot.collector import tune_collector
from aliquot.engine import Bind, Engine, GpuKnobs, Knobs, PlacementKnobs, Pod, PodSet

DEMAND = 1.3
SEEDS = 10
_RULES = ("best fit", "worst fit", "dot product", "random", "FGD")
_PLACEMENTS: dict[str, Knobs] = {
    "CompactFirst, pack": Knobs(gpu=GpuKnobs("CompactFirst")),
    "NodeCompactGPULowLoad, pack": Knobs(),
    "LowLoadFirst, spread": Knobs(
        gpu=GpuKnobs("LowLoadFirst"), placement=PlacementKnobs(score="spread")
    ),
    "leastFragmentation": Knobs(gpu=GpuKnobs("leastFragmentation")),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What to pack, and how often."""

    trace: str | None = None
    seeds: int = SEEDS
    """Draws, with the seeds from 1 on."""


def measure(settings: Settings, progress: Callable[[str], None]) -> list[Figure]:
    """The cards in use by each rule and placement: the mean of all draws, and their range."""
    workload = made_up() if settings.trace is None else of_trace(settings.trace)
    shares: dict[str, list[float]] = {}
    seconds: list[float] = []
    for seed in range(1, settings.seeds + 1):
        pods = list(workload.draw(seed, DEMAND))
        for rule in _RULES:
            progress(f"{rule}, seed {seed}")
            shares.setdefault(rule, []).append(rules.packed(workload, pods, rule, seed))
        for placement, knobs in _PLACEMENTS.items():
            progress(f"{placement}, seed {seed}")
            share, took = packed(workload, pods, knobs)
            shares.setdefault(placement, []).append(share)
            if knobs is _PLACEMENTS["leastFragmentation"]:
                seconds.append(took)
    figures = [_figure(name, found) for name, found in shares.items()]
    above = _mean(shares["leastFragmentation"]) - _mean(shares["FGD"])
    budgets = (">= 1", "<= 10") if settings.trace is not None else ("", "")
    pods_drawn = len(list(workload.draw(1, DEMAND)))
    return [
        *figures,
        Figure("leastFragmentation above FGD", round(above, 2), "points", budgets[0]),
        Figure(f"a run of it, {pods_drawn:,} pods one by one", _mean(seconds), "s", budgets[1]),
    ]


def packed(workload: Workload, pods: Sequence[Pod], knobs: Knobs) -> tuple[float, float]:
    """The percentage of all cards in use once these pods have come one by one; and the CPU time."""
    engine = Engine("capacity", knobs)
    for event in workload.servers:
        engine.apply(event)
    parts = 0
    tune_collector()
    begin = time.process_time()
    for now, pod in enumerate(pods):
        engine.apply(PodSet(pod))
        for decision in engine.cycle(now):
            if isinstance(decision, Bind):
                bound = replace(decision.pod, node=decision.node, devices=decision.devices)
                engine.apply(PodSet(bound))
                parts += asked_parts(bound.shape)
    took = time.process_time() - begin
    return 100 * parts / (CARD * sum(workload.cards.values())), took


def _figure(name: str, shares: list[float]) -> Figure:
    words = f"cards in use, {name} ({min(shares):.2f} to {max(shares):.2f})"
    return Figure(words, round(_mean(shares), 2), "%")


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
