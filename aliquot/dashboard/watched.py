"""A cluster as the page watches it: an engine that follows and never decides, and what is counted.

Everything that is shown of a cluster is worked out here, in one place for live clusters and dumps:
`Watched` gets the engine's events, and a `look` at it makes the next frame.
"""

from collections.abc import Sequence
from typing import Any

from aliquot.dashboard import story
from aliquot.dashboard.board import Board, Frame
from aliquot.dashboard.history import History
from aliquot.dashboard.occupancy import Occupancy, takes
from aliquot.dashboard.waiting_list import WaitingList
from aliquot.engine import (
    SECOND,
    Engine,
    Event,
    GangGone,
    GangSet,
    Pod,
    PodGone,
    PodSet,
    Quota,
    QuotaGone,
    QuotaSet,
    importance,
)

_MOST_ENDED = 5000
"""Pods that have ended, and are remembered: more than end while an Event is under way."""
_MOST_PODS = 500
"""Pods of one quota or node that are told at once: a table longer than that is not read."""


class Watched:
    """One cluster under one policy, from the events that its engine gets."""

    def __init__(self, engine: Engine, board: Board, levels: Sequence[str] = ()) -> None:
        self.engine = engine
        self.board = board
        self.occupancy = Occupancy(engine.quota_of, levels)
        self.history = History()
        self.version = 0
        """Grows with every event."""
        self.live = False
        """Is what happens now told as a story? Not while the first objects are read."""
        self._waiting = WaitingList()
        self._quotas: dict[str, Quota] = {}
        self._evicted: set[str] = set()
        """Pods whose eviction has been told: that they are gone is no news."""
        self._ended: dict[str, str | None] = {}
        """The quotas of the pods that have ended of late, by path: Events tell of them later."""
        self._recount = False

    @property
    def is_asking(self) -> bool:
        """Is there a waiting pod whose reason the next frame may bring, though nothing changes?"""
        return self._waiting.is_asking

    def apply(self, event: Event, now: int) -> None:
        """Follow an event that the engine has taken."""
        self.version += 1
        if self.live:
            self._tell(event, now)
        if isinstance(event, QuotaSet):
            self._quotas[event.quota.name] = event.quota
        elif isinstance(event, QuotaGone):
            self._quotas.pop(event.name, None)
        self.occupancy.apply(event)
        self._recount |= isinstance(event, QuotaSet | QuotaGone | GangSet | GangGone)

    def note(self, entry: story.Entry) -> None:
        """Add an entry to the story that no event of the engine tells."""
        if entry["kind"] == "evict":
            self._evicted.add(entry["pod"])
        self.board.note(entry)

    def _tell(self, event: Event, now: int) -> None:
        match event:
            case PodSet(pod):
                before = self.occupancy.pods.get(pod.uid)
                if before is not None and before.node is None and pod.node is not None:
                    self.board.note(story.start(pod, self.engine.quota_of(pod), now))
            case PodGone(uid):
                self._tell_end(uid, now)
            case QuotaSet(quota):
                self._tell_change(quota.name, quota, now)
            case QuotaGone(name):
                self._tell_change(name, None, now)
            case _:
                pass

    def quota_of(self, path: str) -> str | None:
        """The quota of a pod that has just been evicted, and may be gone already."""
        if path in self._ended:
            return self._ended[path]
        found = (pod for pod in self.occupancy.pods.values() if pod.path == path)
        return next((self.occupancy.quota_of(pod) for pod in found), None)

    def _tell_end(self, uid: str, now: int) -> None:
        pod = self.occupancy.pods.get(uid)
        if pod is None or pod.node is None:
            return
        if len(self._ended) >= _MOST_ENDED:
            del self._ended[next(iter(self._ended))]
        self._ended[pod.path] = self.occupancy.quota_of(pod)
        if pod.path in self._evicted:
            self._evicted.discard(pod.path)
        else:
            self.board.note(story.end(pod, self.occupancy.quota_of(pod), now))

    def _tell_change(self, name: str, quota: Quota | None, now: int) -> None:
        entry = story.change(name, self._quotas.get(name), quota, now)
        if entry is not None:
            self.board.note(entry)

    def look(self, now: int, notice: str = "") -> Frame:
        """The next frame, and a sample for the history."""
        if self._recount:
            self._recount = False
            self.occupancy.recount()
        self.engine.follow(now)
        self._waiting.version = self.version
        frame, summaries = self.board.look(self.engine, self.occupancy, self._waiting, now, notice)
        if self.board.resources:
            self.history.note(summaries, self.board.resources[0], now)
        return frame

    def quota(self, name: str, now: int) -> dict[str, Any] | None:
        """The pods of a quota in the order of importance, the most important first; its history."""
        found = next((each for each in self.engine.summarise() if each.name == name), None)
        if found is None:
            return None
        pods = [
            pod
            for by_uid in self.occupancy.by_node.values()
            for pod in by_uid.values()
            if self.engine.quota_of(pod) == name
        ]
        over = self.engine.over_quota_pods()
        pods.sort(key=lambda pod: (pod.uid in over, importance(pod)))
        return {
            "name": name,
            "history": self.history.of(name),
            "pods": [self._pod(pod, now, over) for pod in pods[:_MOST_PODS]],
            "more": max(0, len(pods) - _MOST_PODS),
        }

    def _pod(self, pod: Pod, now: int, over: set[str]) -> dict[str, Any]:
        return {
            "pod": pod.path,
            "node": pod.node,
            "priority": pod.priority,
            "age": (now - pod.started) / SECOND if pod.started else None,
            "takes": takes(pod),
            "capacity": "over-quota" if pod.uid in over else "in-quota",
        }

    def node(self, name: str) -> dict[str, Any] | None:
        """What is free on a node, and its pods."""
        node = self.occupancy.nodes.get(name)
        if node is None:
            return None
        pods = sorted(self.occupancy.by_node.get(name, {}).values(), key=lambda pod: pod.path)
        free = dict(node.allocatable)
        for pod in pods:
            for resource, amount in pod.shape.requests:
                free[resource] = free.get(resource, 0) - amount
        free["pods"] = free.get("pods", 0) - len(pods) if "pods" in free else 0
        return {
            "name": name,
            "cards": [
                [[pod.path, self.engine.quota_of(pod), part] for pod, part in users]
                for users in self.occupancy.cards(name)
            ],
            "free": {resource: amount for resource, amount in free.items() if amount > 0},
            "pods": [
                {
                    "pod": pod.path,
                    "quota": self.engine.quota_of(pod),
                    "takes": takes(pod),
                }
                for pod in pods[:_MOST_PODS]
            ],
        }
