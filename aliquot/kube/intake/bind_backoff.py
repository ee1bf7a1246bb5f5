"""Pods that are kept from the engine for a while.

A pod whose binding was refused backs off, longer each time, so that it cannot keep other pods from
being bound. A pod that names a PodGroup which is not known yet waits for it: pods and PodGroups are
watched separately, and a member that is seen first must not be bound alone. If the PodGroup does
not come within that time, it may never come, and the pod is scheduled without it.
"""

from collections.abc import Callable

from aliquot.engine import Pod
from aliquot.kube.api.backoff import Timers, pause

_FIRST = 1.0
"""Seconds, as kube-scheduler's first backoff of a pod."""
_LONGEST = 300.0
"""Seconds: a binding that was refused some ten times needs a person, who takes minutes."""
_GANG_SECONDS = 10.0
"""Far longer than one watch lags behind another, and short for a pod whose group never comes."""


class BindBackoff:
    """The pods that are kept back; `on_end` is called with the uid when a pod's time is over."""

    def __init__(self, on_end: Callable[[str], None]) -> None:
        self._on_end = on_end
        self._timers = Timers()
        self._kept_back: set[str] = set()
        self._failures: dict[str, int] = {}
        """How often the binding of a pod was refused in a row."""
        self._without_gang: set[str] = set()
        """Pods that wait, or have waited, for their PodGroup."""

    def keeps_back(self, pod: Pod, gang: str | None) -> bool:
        """Must the engine not know of this pod yet? `gang` is the PodGroup that it names."""
        if pod.node is not None:
            self._failures.pop(pod.uid, None)
            return False
        if gang is None or pod.gang is not None:
            if pod.uid in self._without_gang:
                self._without_gang.discard(pod.uid)
                self._kept_back.discard(pod.uid)
        elif pod.uid not in self._without_gang:
            self._without_gang.add(pod.uid)
            self._start(pod.uid, _GANG_SECONDS)
        return pod.uid in self._kept_back

    def bind_failed(self, uid: str) -> float:
        """Back off after a refused binding; returns for how many seconds."""
        tries = self._failures.get(uid, 0)
        self._failures[uid] = tries + 1
        seconds = pause(tries, _FIRST, _LONGEST)
        self._start(uid, seconds)
        return seconds

    def gone(self, uid: str) -> None:
        """The pod was deleted."""
        self._failures.pop(uid, None)
        self._without_gang.discard(uid)
        self._kept_back.discard(uid)

    def stop(self) -> None:
        """Never call `on_end` again."""
        self._timers.stop()

    def _start(self, uid: str, seconds: float) -> None:
        self._kept_back.add(uid)
        self._timers.after(seconds, lambda: self._end(uid))

    def _end(self, uid: str) -> None:
        if uid in self._kept_back:
            self._kept_back.discard(uid)
            self._on_end(uid)
