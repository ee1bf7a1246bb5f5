"""Eviction units: the pods that are evicted together: one pod, or a whole gang.

A gang may lose pods beyond `minMember` one by one; else it is evicted whole. How many pods it can
lose is a limit like any other: each of its pods draws on it, and the whole gang uses it up.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

from aliquot.engine.gang_claims import staying_pods
from aliquot.engine.model.gang import Gang, surplus_of
from aliquot.engine.model.importance import importance
from aliquot.engine.model.pod import Pod
from aliquot.engine.state import State

Draws = dict[object, int]


class EvictionUnit(NamedTuple):
    """Pods that are evicted together, and how much of their gang's surplus that takes."""

    uids: tuple[str, ...]
    draws: Draws


class EvictionUnits:
    """Makes eviction units of pods; `limits` is how many pods each gang can lose."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.limits: Draws = {}
        self._members: dict[str, tuple[str, ...]] = {}
        self._wholes: dict[tuple[str, Container[str]], tuple[str, ...]] = {}
        self._evicted: set[str] = set()

    def mark_evicted(self, uids: Iterable[str]) -> None:
        """These pods are victims already."""
        self._evicted.update(uids)
        self._wholes.clear()

    def may_evict(self, uids: Iterable[str]) -> bool:
        """May exactly these pods be evicted? Not if a gang keeps some pods, but too few to run."""
        evicted: dict[str, list[Pod]] = {}
        for uid in uids:
            pod = self._state.pods[uid]
            if self._gang_of(pod) is not None:
                evicted.setdefault(str(pod.gang), []).append(pod)
        for name, pods in evicted.items():
            left = surplus_of(self._state.gangs.known[name], staying_pods(self._state, name))
            of_task = Counter(pod.task for pod in pods)
            tasks = all(of_task[task] <= number for task, number in left.by_task.items())
            whole = len(pods) == len(staying_pods(self._state, name))
            if not whole and not (tasks and len(pods) <= left.total):
                return False
        return True

    def of(self, uids: Iterable[str], evictable: Container[str]) -> Iterator[EvictionUnit]:
        """The units in which these pods could be evicted; a gang only if all of it may."""
        seen: set[str] = set()
        for uid in uids:
            pod = self._state.pods[uid]
            gang = self._gang_of(pod)
            if gang is None:
                yield EvictionUnit((uid,), {})
                continue
            self._note_gang(gang)
            draws: Draws = dict.fromkeys(self._accounts(gang, pod.task), 1)
            if all(self.limits[account] > 0 for account in draws):
                yield EvictionUnit((uid,), draws)
            if gang.name not in seen:
                seen.add(gang.name)
                yield from self._whole(gang, evictable)

    def _gang_of(self, pod: Pod) -> Gang | None:
        """The gang that the pod is evicted with; one that terminates has left it already."""
        return None if pod.terminating else self._state.gangs.of(pod)

    def _whole(self, gang: Gang, evictable: Container[str]) -> Iterator[EvictionUnit]:
        key = gang.name, evictable
        members = self._wholes.get(key)
        if members is None:
            left = [uid for uid in self._members[gang.name] if uid not in self._evicted]
            members = tuple(left) if all(uid in evictable for uid in left) else ()
            self._wholes[key] = members
        if members:
            tasks = (task for task, _ in gang.min_tasks)
            accounts = {each for task in ("", *tasks) for each in self._accounts(gang, task)}
            yield EvictionUnit(members, {each: self.limits[each] for each in sorted(accounts)})

    def _note_gang(self, gang: Gang) -> None:
        if gang.name not in self._members:
            pods = sorted(staying_pods(self._state, gang.name), key=importance)
            self._members[gang.name] = tuple(pod.uid for pod in pods)
            left = surplus_of(gang, pods)
            self.limits["surplus", gang.name, ""] = left.total
            for task, number in left.by_task.items():
                self.limits["surplus", gang.name, task] = number

    def _accounts(self, gang: Gang, task: str) -> list[tuple[str, str, str]]:
        needed = task and any(task == each for each, _ in gang.min_tasks)
        tasks = ["", task] if needed else [""]
        return [("surplus", gang.name, each) for each in tasks]
