"""Estimates of waits, measured: how often the range holds the truth, and how far the median is off.

A cluster is played in virtual time. When a pod that comes must wait, `estimate` is asked when it
will start, of a copy of that moment, which knows nothing of what comes. Later the play shows when
it really started. Half of the kinds of pods run for about as long as each other, half do not; no
pod states its end. Nothing is timed, so the figures are the same on every machine. A range from the
tenth to the ninetieth percent should hold the truth in four of five cases; the naive guess to
compare with is the mean of the waits so far. Several clusters are played, each with a
stream of its own: in the history of one of them, the estimates of many pods miss alike.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aliquot.bench.figure import Figure
from aliquot.dialects.core.documents import Document
from aliquot.json import Body
from aliquot.questions.estimate import estimate_of
from aliquot.questions.sources.source import Source
from aliquot.simulation.simulation import Simulation

GPU = "nvidia.com/gpu"
_NODES, _CARDS, _TEAMS = 10, 8, 4
_WARM_UP, _JUDGED, _PODS = 300, 900, 1_200
"""Estimates are asked after the first pods, when durations of each kind are known; and the stream
goes on past the last of them, as it has gone before: pods that come delay those that wait."""
_SEEDS = (1, 2, 3)
_EVERY = 3
"""Of the pods that must wait, each one of so many is asked about: plays take half a second."""
_SIZES = (1, 1, 2, 2, 4)
_MEAN_SIZE = sum(_SIZES) / len(_SIZES)
_SECOND = 1_000_000_000
_MEAN = 30 * 60
"""Seconds that a pod runs, in the mean of all kinds."""
_LOAD = 1.1
"""Of all GPUs, what the stream asks for: a little too much, so that queues grow longer."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An estimate, and when the pod then started."""

    seconds: float
    low: float
    high: float
    naive: float
    truth: float


def estimates(progress: Callable[[str], None]) -> list[Figure]:
    """The share of ranges that hold the truth, and the mean error beside that of a naive guess."""
    asked, unknown = list[Asked](), 0
    for seed in _SEEDS:
        progress(f"{_PODS} pods on {_NODES} nodes (seed {seed}), and estimates of those that wait")
        found, missing = play(Source("generated", _documents(random.Random(seed))))
        asked += found
        unknown += missing
    return figures(asked, unknown)


def figures(asked: list[Asked], unknown: int) -> list[Figure]:
    """What became of the estimates."""
    if not asked:
        return [Figure("pods asked about", 0, "pods")]
    held = sum(each.low <= each.truth <= each.high for each in asked) / len(asked)
    before = sum(each.truth < each.low for each in asked) / len(asked)
    error = sum(abs(each.seconds - each.truth) for each in asked) / len(asked)
    naive = sum(abs(each.naive - each.truth) for each in asked) / len(asked)
    return [
        Figure("pods asked about", len(asked), "pods"),
        Figure("without an estimate", unknown, "pods"),
        Figure("p10 to p90 holds the truth, at least", 100 * held, "%", ">= 75"),
        Figure("p10 to p90 holds the truth, at most", 100 * held, "%", "<= 85"),
        Figure("started before p10", 100 * before, "%"),
        Figure("started after p90", 100 * (1 - held - before), "%"),
        Figure("mean wait", sum(each.truth for each in asked) / len(asked), "s"),
        Figure("mean error", error, "s"),
        Figure("mean error, in ratio to that of the mean past wait", error / naive, "x", "<= 1"),
    ]


def play(
    source: Source, warm_up: int = _WARM_UP, every: int = _EVERY, judged: int = _JUDGED
) -> tuple[list[Asked], int]:
    """Play a source; what was estimated of pods that waited, and of how many nothing was known."""
    inputs = source.inputs()
    simulation = source.simulation(inputs)
    told: dict[str, tuple[int, dict[str, Any], float]] = {}
    unknown, waited, mean = 0, 0, _Waits(simulation)
    moments = [change.at for change in inputs.changes]
    for number, at in enumerate(moments):
        simulation.run(until=at)
        if not warm_up <= number < judged:
            continue
        for manifest in inputs.changes[number].apply:
            record = simulation.world.record_of(f"{manifest.namespace}/{manifest.name}")
            if manifest.kind != "Pod" or record is None or record.phase != "Pending":
                continue
            waited += 1
            if waited % every:
                continue
            found = estimate_of(simulation, record.pod.uid)
            if found is None:
                unknown += 1
            else:
                told[record.pod.uid] = (at, found, mean.so_far())
    simulation.run()
    started = {d.decision.pod.uid: d.at for d in reversed(simulation.history)}
    asked = [
        Asked(found["seconds"], found["p10"], found["p90"], naive, (started[uid] - at) / _SECOND)
        for uid, (at, found, naive) in told.items()
        if uid in started
    ]
    return asked, unknown


class _Waits:
    """The mean of the waits of all pods that have waited and started so far."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._read = 0
        self._waits: list[float] = []

    def so_far(self) -> float:
        """The mean, in seconds."""
        history, records = self._simulation.history, self._simulation.world.mirror.records
        for done in history[self._read :]:
            wait = done.at - records[done.decision.pod.uid].arrived
            if wait > 0:
                self._waits.append(wait / _SECOND)
        self._read = len(history)
        return sum(self._waits) / len(self._waits) if self._waits else 0.0


def _documents(rng: random.Random) -> list[Document]:
    """Nodes, a quota for each team, and a stream of pods."""
    bodies = [_node(number) for number in range(_NODES)]
    bodies += [_quota(team) for team in range(_TEAMS)]
    kinds = [_kind(rng, number) for number in range(3 * _TEAMS)]
    gap = _MEAN * _MEAN_SIZE / (_NODES * _CARDS * _LOAD)
    at = 0.0
    for number in range(_PODS):
        at += rng.expovariate(1 / gap)
        bodies.append(_pod(rng, number, at, *rng.choice(kinds)))
    return [Document(f"object {n}", body) for n, body in enumerate(bodies)]


def _node(number: int) -> Body:
    has = {"cpu": "64", GPU: str(_CARDS), "pods": "110"}
    status = {"allocatable": has, "capacity": has}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number}"},
        "status": status,
    }


def _quota(team: int) -> Body:
    share = _NODES * _CARDS // _TEAMS
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "quota", "namespace": f"team-{team}"},
        "spec": {"min": {GPU: str(share)}},
    }


def _kind(rng: random.Random, number: int) -> tuple[int, int, float, float]:
    """A kind of pods: its team, its size, how long they run in the mean, and how differently."""
    size = _SIZES[number % len(_SIZES)]
    spread = 0.3 if number % 2 else 1.0
    return number % _TEAMS, size, _MEAN * rng.uniform(0.5, 1.5), spread


def _pod(
    rng: random.Random, number: int, at: float, team: int, size: int, mean: float, spread: float
) -> Body:
    runs = max(rng.lognormvariate(math.log(mean) - spread * spread / 2, spread), 1)
    resources = {"limits": {GPU: str(size)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number}",
            "namespace": f"team-{team}",
            "annotations": {
                "sim.aliquot.dev/arrival": f"{at:.3f}s",
                "sim.aliquot.dev/duration": f"{runs:.3f}s",
            },
        },
        "spec": {
            "preemptionPolicy": "Never",
            "containers": [{"name": "main", "image": "train", "resources": resources}],
        },
    }
