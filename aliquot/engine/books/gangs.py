"""Gangs: pods that start together. Who is of which gang, and which of them make up its core.

The core of a gang is as many pods as it needs: the most important ones, first those of each task
that it cannot do without. While they are not all there, or do not all run, they claim as one. What
a gang has beyond its core is its surplus: these pods start one by one once the core runs, and are
the first to go.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from aliquot.engine.model.objects import Gang, Pod


class Muster(NamedTuple):
    """Who of a gang's waiting pods is needed, who is not, and how many are missing."""

    core: tuple[Pod, ...]
    others: tuple[Pod, ...]
    missing: int


class Gangs:
    """The gangs that are there, and the pods that name them."""

    def __init__(self) -> None:
        self.known: dict[str, Gang] = {}
        self.members: dict[str, dict[str, None]] = {}
        """The uids of the pods of every gang, there or not."""
        self.stirred: dict[str, None] = {}
        """The gangs whose waiting pods are to be mustered anew."""
        self.asking: dict[str, Gang] = {}
        """The gangs that ask for more than their pods do, by the name they are booked under."""

    def __bool__(self) -> bool:
        return bool(self.known)

    def of(self, pod: Pod) -> Gang | None:
        """The gang of a pod, if it is there."""
        return None if pod.gang is None else self.known.get(pod.gang)

    def set(self, gang: Gang) -> None:
        """A gang is there, like this."""
        self.known[gang.name] = gang
        self.stirred[gang.name] = None
        if booked_as(gang) in self.asking:
            self.asking[booked_as(gang)] = gang

    def remove(self, name: str) -> str:
        """A gang is no longer there; returns what it was booked under, if it was."""
        gang = self.known.pop(name)
        self.stirred.pop(name, None)
        self.asking.pop(booked_as(gang), None)
        return booked_as(gang)

    def join(self, pod: Pod) -> None:
        """A pod is there."""
        if pod.gang is not None:
            self.members.setdefault(pod.gang, {})[pod.uid] = None
            self.stir(pod)

    def leave(self, pod: Pod) -> None:
        """A pod, like this when it joined, is no longer there."""
        if pod.gang is not None:
            left = self.members[pod.gang]
            left.pop(pod.uid, None)
            if not left:
                del self.members[pod.gang]
            self.stir(pod)

    def stir(self, pod: Pod) -> None:
        """Something has become of a pod: its gang may need others, or no more."""
        if pod.gang in self.known:
            self.stirred[pod.gang] = None


def booked_as(gang: Gang) -> str:
    """The name under which the books have what a gang asks for beyond its pods."""
    return f"<gang {gang.name}>"


def muster(gang: Gang, ranked: Sequence[Pod], there: Counter[str]) -> Muster:
    """Who of these is needed beside those who are `there` by task: which run, or have ended well.

    They come the most important first. Nobody is needed, once the core is complete.
    """
    core, missing = _pick(gang, ranked, there)
    chosen = {pod.uid for pod in core}
    return Muster(core, tuple(pod for pod in ranked if pod.uid not in chosen), missing)


def _pick(gang: Gang, ranked: Sequence[Pod], there: Counter[str]) -> tuple[tuple[Pod, ...], int]:
    """The most important ones: of every task as many as it lacks, then of any."""
    picked: dict[str, None] = {}
    missing = 0
    for task, few in gang.min_tasks:
        lacks = max(few - there[task], 0)
        found = [pod.uid for pod in ranked if pod.task == task][:lacks]
        picked.update(dict.fromkeys(found))
        missing += lacks - len(found)
    lacks = max(gang.min_member - there.total() - len(picked) - missing, 0)
    more = [pod.uid for pod in ranked if pod.uid not in picked][:lacks]
    picked.update(dict.fromkeys(more))
    return tuple(pod for pod in ranked if pod.uid in picked), missing + lacks - len(more)


def core_of(gang: Gang, pods: Sequence[Pod]) -> tuple[Pod, ...]:
    """The core among pods that run, the most important first; all of them if they are too few."""
    return _pick(gang, pods, Counter(dict(gang.done)))[0]


class Spare(NamedTuple):
    """How many pods a gang can do without: of all, and of each task that it needs some of."""

    total: int
    by_task: dict[str, int]


def spare(gang: Gang, pods: Iterable[Pod]) -> Spare:
    """What a gang has beyond its core, as these pods run."""
    there = Counter(dict(gang.done)) + Counter(pod.task for pod in pods)
    by_task = {task: max(there[task] - few, 0) for task, few in gang.min_tasks}
    lacks = any(there[task] < few for task, few in gang.min_tasks)
    return Spare(0 if lacks else max(there.total() - gang.min_member, 0), by_task)


class Unit(NamedTuple):
    """What counts as one in the order of importance: a pod, or the core of a gang."""

    pods: list[Pod]
    is_core: bool = False


def units(pods: Sequence[Pod], gang_of: Callable[[Pod], Gang | None]) -> list[Unit]:
    """Pods in order of importance, with each core in one piece at the place of its first pod."""
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
