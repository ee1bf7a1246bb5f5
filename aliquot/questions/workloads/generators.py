"""Workloads that are made up: a known generator of the field, and Poisson arrivals; by a seed.

The same arguments make the same file. Work is made of Jobs, so that what is evicted is made anew.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from aliquot.dialects.core.simulation_annotations import ARRIVAL, DURATION
from aliquot.errors import InputError
from aliquot.json import Body

_QUOTA = "scheduling.sigs.k8s.io/v1alpha1"
_TREE = "quota.scheduling.koordinator.sh/"
_COHORTS, _QUEUES = 5, 6
_NOMINAL, _BORROWING = 20, 100


@dataclass(frozen=True, slots=True)
class Class:
    """Workloads of one size in each queue of the baseline."""

    name: str
    count: int
    cpu: int
    milliseconds: int
    priority: int
    every: int
    """Milliseconds between two of them."""


BASELINE = (
    Class("small", 350, 1, 200, 50, 100),
    Class("medium", 100, 5, 500, 100, 500),
    Class("large", 50, 20, 1_000, 200, 1_200),
)
"""Kueue's baseline generator, by which its performance is tested."""


def baseline(part: float = 1.0) -> Iterator[Body]:
    """Five cohorts of six queues, each of nominal 20 cpu that may borrow 100; 500 Jobs in each.

    `part`: only so much of each class, for a smaller run of the same shape.
    """
    total = _COHORTS * _QUEUES * _NOMINAL
    yield _node("node", {"cpu": total, "pods": 10 * total})
    for cohort in range(_COHORTS):
        parent = f"cohort-{cohort}"
        most = _QUEUES * _NOMINAL
        yield _quota(parent, most, most, {"is-parent": "true"})
        for queue in range(_QUEUES):
            name = f"{parent}-queue-{queue}"
            yield _quota(name, _NOMINAL, _NOMINAL + _BORROWING, {"parent": parent})
            for each in BASELINE:
                for number in range(max(round(each.count * part), 1)):
                    times = {
                        ARRIVAL: f"{number * each.every}ms",
                        DURATION: f"{each.milliseconds}ms",
                    }
                    asks = {"cpu": each.cpu}
                    yield _job(f"{each.name}-{number}", name, asks, times, each.priority)


@dataclass(frozen=True, slots=True)
class Quantiles:
    """A distribution by its quantiles, such as `0:1,50:2,90:8,100:64`: linear between them."""

    points: tuple[tuple[float, float], ...]

    def at(self, percent: float) -> float:
        """The value at a quantile."""
        before = self.points[0]
        for point in self.points:
            if percent <= point[0]:
                span = point[0] - before[0]
                part = (percent - before[0]) / span if span else 1.0
                return before[1] + part * (point[1] - before[1])
            before = point
        return before[1]


def quantiles(text: str, option: str) -> Quantiles:
    """Read quantiles; one number alone is that for all."""
    try:
        pairs = [
            tuple(map(float, each.split(":"))) if ":" in each else (100.0, float(each))
            for each in text.split(",")
        ]
        points = tuple((percent, value) for percent, value in pairs)
    except ValueError:
        problem = f"{text!r:.60} is not quantiles such as 50:1,90:4,100:8"
        raise InputError(option, "", problem) from None
    rising = all(one[0] < two[0] and one[1] <= two[1] for one, two in pairwise(points))
    if not rising or not 0 <= points[0][0] <= points[-1][0] == 100 or points[0][1] < 0:
        raise InputError(option, "", f"{text!r:.60}: quantiles must rise, up to 100")
    return Quantiles(points)


@dataclass(frozen=True, slots=True)
class Poisson:
    """Poisson arrivals: how many Jobs, of how many teams, on what."""

    jobs: int
    per_hour: float
    teams: int
    gpus: Quantiles
    minutes: Quantiles
    nodes: int
    cards: int
    seed: int


def poisson(wanted: Poisson) -> Iterator[Body]:
    """Nodes, a quota for each team (an equal part, and up to all), and Jobs that come at random."""
    random = Random(wanted.seed)
    for number in range(wanted.nodes):
        has = {"cpu": 12 * wanted.cards, "nvidia.com/gpu": wanted.cards, "pods": 110}
        yield _node(f"node-{number}", has)
    total = wanted.nodes * wanted.cards
    for number in range(wanted.teams):
        name = f"team-{number}"
        low, high = {"nvidia.com/gpu": total // wanted.teams}, {"nvidia.com/gpu": total}
        yield {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "ElasticQuota",
            "metadata": {"name": name, "namespace": name},
            "spec": {"min": low, "max": high},
        }
    at = 0.0
    for number in range(wanted.jobs):
        at += random.expovariate(wanted.per_hour / 3600)
        team = f"team-{random.randrange(wanted.teams)}"
        gpus = max(round(wanted.gpus.at(100 * random.random())), 1)
        seconds = max(round(60 * wanted.minutes.at(100 * random.random())), 1)
        times = {ARRIVAL: f"{round(at * 1000)}ms", DURATION: f"{seconds}s"}
        asks = {"cpu": gpus, "nvidia.com/gpu": min(gpus, max(wanted.cards, 1))}
        yield _job(f"job-{number}", team, asks, times, 0)


def _node(name: str, has: Body) -> Body:
    status = {"allocatable": {key: str(amount) for key, amount in has.items()}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def _quota(name: str, low: int, high: int, labels: dict[str, str]) -> Body:
    metadata = {
        "name": name,
        "namespace": name,
        "labels": {f"{_TREE}{key}": value for key, value in labels.items()},
    }
    spec = {"min": {"cpu": str(low)}, "max": {"cpu": str(high)}}
    return {"apiVersion": _QUOTA, "kind": "ElasticQuota", "metadata": metadata, "spec": spec}


def _job(name: str, namespace: str, asks: Body, times: dict[str, str], priority: int) -> Body:
    requests = {key: str(amount) for key, amount in asks.items()}
    limits = {key: amount for key, amount in requests.items() if "/" in key}
    resources = {"requests": requests, **({"limits": limits} if limits else {})}
    spec: Body = {
        "restartPolicy": "Never",
        "schedulerName": "aliquot",
        "containers": [{"name": "main", "image": "generated", "resources": resources}],
    }
    if priority:
        spec["priority"] = priority
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "annotations": dict(times)},
        "spec": {"template": {"spec": spec}},
    }
