"""Pods that are to be left alone for a while: the engine does not know of them yet.

One whose binding was refused rests, longer each time, so that it cannot keep others from starting.
One that names a gang of which nothing is known waits for it: pods and groups are watched apart, and
a pod that is seen first must not start alone. A group that does not come within that time may never
come, and the pod is on its own.
"""

from collections.abc import Callable

from aliquot.engine import Pod
from aliquot.kube.api.backoff import Timers, pause

_FIRST, _LONGEST = 1.0, 300.0
_FOR_A_GANG = 10.0


class BindBackoff:
    """Who rests. `over` is called with the uid of each that has rested."""

    def __init__(self, over: Callable[[str], None]) -> None:
        self._over = over
        self._timers = Timers()
        self._resting: set[str] = set()
        self._refused: dict[str, int] = {}
        """How often the binding of a pod was refused in a row."""
        self._alone: set[str] = set()
        """Pods that have waited for their gang, or do."""

    def keeps(self, pod: Pod, gang: str | None) -> bool:
        """Is this pod to be left alone for now? `gang` is the group that it names, if it does."""
        if pod.node is not None:
            return False
        if gang is None or pod.gang is not None:
            if pod.uid in self._alone:
                self._alone.discard(pod.uid)
                self._resting.discard(pod.uid)
        elif pod.uid not in self._alone:
            self._alone.add(pod.uid)
            self._rest(pod.uid, _FOR_A_GANG)
        return pod.uid in self._resting

    def refuse(self, uid: str) -> float:
        """A binding was refused; returns for how many seconds the pod rests."""
        tries = self._refused.get(uid, 0)
        self._refused[uid] = tries + 1
        seconds = pause(tries, _FIRST, _LONGEST)
        self._rest(uid, seconds)
        return seconds

    def bound(self, uid: str) -> None:
        """All went well."""
        self._refused.pop(uid, None)

    def gone(self, uid: str) -> None:
        """A pod is no longer there."""
        self._refused.pop(uid, None)
        self._alone.discard(uid)
        self._resting.discard(uid)

    def stop(self) -> None:
        """Wake nobody."""
        self._timers.stop()

    def _rest(self, uid: str, seconds: float) -> None:
        self._resting.add(uid)
        self._timers.after(seconds, lambda: self._rested(uid))

    def _rested(self, uid: str) -> None:
        if uid in self._resting:
            self._resting.discard(uid)
            self._over(uid)
