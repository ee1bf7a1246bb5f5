"""Gangs: pods that start together, and which pods of a gang are its core.

The core of a gang is as many pods as it needs: the most important ones, first those of each task
that it cannot do without. While the core does not run, its pods are one claim. Pods beyond the core
are its surplus: they start one by one once the core runs, and are evicted first.

Pure functions over one gang and its pods; `books.gangs` knows which gangs there are.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from aliquot.engine.model.checks import check, sorted_amounts
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.quantity import Amounts
from aliquot.errors import ArgumentError


@dataclass(frozen=True, slots=True)
class Topology:
    """How near to each other the pods of a gang run.

    `levels` are labels of nodes, from narrow to wide; the nodes with one value of a label are one
    domain. The gang starts in a domain of the narrowest level of which one holds it. If none does,
    it does not start if that is `required`, and else anywhere.
    """

    levels: tuple[str, ...]
    required: bool = True

    def __post_init__(self) -> None:
        check(self, Topology, "topology")
        if not self.levels:
            raise ArgumentError("topology: levels: there are none")


@dataclass(frozen=True, slots=True)
class Gang:
    """Pods that start together: at least `min_member` of them, or none.

    `min_tasks` is the least number of pods of each task. Until its pods exist, a gang requests
    `min_resources`. `quota` is the gang's quota, `priority` its priority if it has one: its pods
    have at least that. If it is not `preemptible`, none of its pods is. `done` is how many pods of
    each task have succeeded, which count as if they ran; `failed` how many have failed. `together`
    names the gangs that it starts with, in whatever namespace: their cores start at once, or none
    does. While it waits for room, one that `keeps_room` has what it finds reserved from the start.
    `topology` is how near to each other its pods run, if that matters.
    """

    name: str
    min_member: int = 1
    min_tasks: tuple[tuple[str, int], ...] = ()
    min_resources: Amounts = ()
    quota: str | None = None
    priority: int | None = None
    created: int = 0
    done: tuple[tuple[str, int], ...] = ()
    failed: int = 0
    preemptible: bool = True
    together: tuple[str, ...] = ()
    keeps_room: bool = False
    topology: Topology | None = None

    def __post_init__(self) -> None:
        found = sorted_amounts(self.min_resources, f"gang {self.name}: min_resources")
        object.__setattr__(self, "min_resources", found)


class CoreSelection(NamedTuple):
    """Of a gang's pending pods, those its core needs and the others; and how many are missing."""

    core: tuple[Pod, ...]
    others: tuple[Pod, ...]
    missing: int


def select_core(gang: Gang, ranked: Sequence[Pod], present: Counter[str]) -> CoreSelection:
    """The pending pods (`ranked`, the most important first) that complete the core of a gang.

    `present` is how many pods of each task run or have succeeded. Once they make up the core, no
    pending pod is part of it.
    """
    core, missing = _pick(gang, ranked, present)
    if not gang.min_tasks:
        return CoreSelection(core, tuple(ranked[len(core) :]), missing)
    chosen = {pod.uid for pod in core}
    return CoreSelection(core, tuple(pod for pod in ranked if pod.uid not in chosen), missing)


def _pick(gang: Gang, ranked: Sequence[Pod], present: Counter[str]) -> tuple[tuple[Pod, ...], int]:
    """The most important pods: of each task as many as it lacks, then of any; and how many lack."""
    if not gang.min_tasks:
        lacks = max(gang.min_member - present.total(), 0)
        found = tuple(ranked[:lacks])
        return found, lacks - len(found)
    picked: dict[str, None] = {}
    missing = 0
    for task, few in gang.min_tasks:
        lacks = max(few - present[task], 0)
        those = [pod.uid for pod in ranked if pod.task == task][:lacks]
        picked.update(dict.fromkeys(those))
        missing += lacks - len(those)
    lacks = max(gang.min_member - present.total() - len(picked) - missing, 0)
    more = [pod.uid for pod in ranked if pod.uid not in picked][:lacks]
    picked.update(dict.fromkeys(more))
    return tuple(pod for pod in ranked if pod.uid in picked), missing + lacks - len(more)


def core_of(gang: Gang, pods: Sequence[Pod]) -> tuple[Pod, ...]:
    """The core among bound pods, the most important first; all of them if they are too few."""
    return _pick(gang, pods, Counter(dict(gang.done)))[0]


class Surplus(NamedTuple):
    """How many pods a gang has beyond its core: in all, and of each task in `min_tasks`."""

    total: int
    by_task: dict[str, int]


def surplus_of(gang: Gang, pods: Iterable[Pod]) -> Surplus:
    """The surplus of a gang of which these pods are bound."""
    present = Counter(dict(gang.done)) + Counter(pod.task for pod in pods)
    by_task = {task: max(present[task] - few, 0) for task, few in gang.min_tasks}
    lacks = any(present[task] < few for task, few in gang.min_tasks)
    return Surplus(0 if lacks else max(present.total() - gang.min_member, 0), by_task)


class Unit(NamedTuple):
    """What is in-quota or over-quota as a whole: one pod, or the core of a gang."""

    pods: list[Pod]
    is_core: bool = False


def units(pods: Sequence[Pod], gang_of: Callable[[Pod], Gang | None]) -> list[Unit]:
    """Pods in order of importance as units, each core at the place of its most important pod."""
    by_gang: dict[str, list[Pod]] = {}
    for pod in pods:
        if gang_of(pod) is not None:
            by_gang.setdefault(str(pod.gang), []).append(pod)
    cores: dict[str, Unit] = {}
    for members in by_gang.values():
        gang = gang_of(members[0])
        assert gang is not None
        core = Unit(list(core_of(gang, members)), is_core=True)
        cores.update({pod.uid: core for pod in core.pods})
    placed: set[str] = set()
    found: list[Unit] = []
    for pod in pods:
        if pod.uid not in placed:
            unit = cores.get(pod.uid, Unit([pod]))
            placed.update(each.uid for each in unit.pods)
            found.append(unit)
    return found
