"""Keeps the numbers in the messages of waiting pods up to date.

The engine reports why a pod waits when the reason changes. The numbers in the message become stale
when quotas are edited and other pods start or end. So every waiting pod is checked again from time
to time, a few at a time, and its condition is written where the message has changed.

A message that counts down ("gives back in 90 s") changes every second. It is asked for at the last
tick of a slow clock, so that the time it says is at most one tick too long, and its condition is
written once a tick.
"""

import time

from aliquot.dialects.quota_index import QuotaIndex
from aliquot.engine import Engine, Refusal
from aliquot.kube.execution.pod_status import PodStatus, refusal_of

_ROUND_SECONDS = 15.0
"""How old a message may become: short for a person who looks, long beside the time of a round."""
_AT_ONCE = 0.02
"""Seconds that one call may take: a cycle is delayed by no more than that."""
_MOST_WRITES = 25
"""Conditions that one call, about a second's, lets be written anew: a person reads a few of them,
and thousands of pods that wait must not keep the server busy with numbers that change."""
_TICK = 30 * 10**9
"""Nanoseconds between two ticks: of the two minutes of `revokeAfter`, four are written; and 10,000
pods that wait for the same quota cost some 300 writes a second, a fraction of what a server takes.
"""


class StaleReasons:
    """Checks all waiting pods in rounds."""

    def __init__(self, pod_status: PodStatus) -> None:
        self._pod_status = pod_status
        self._due: list[str] = []
        self._next_round = 0.0
        self._quota_index = QuotaIndex()

    def refresh(self, engine: Engine, quota_index: QuotaIndex, now: int) -> None:
        """Check the next few pods; all of them anew if a quota was edited.

        `now` is the time by which the engine decides, in nanoseconds.
        """
        until = time.monotonic() + _AT_ONCE
        if quota_index is not self._quota_index:
            self._quota_index, self._due, self._next_round = quota_index, [], 0.0
        if not self._due and time.monotonic() >= self._next_round:
            self._next_round = time.monotonic() + _ROUND_SECONDS
            self._due = self._pod_status.refused()
        answers: dict[object, Refusal | None] = {}
        written = 0
        while self._due and time.monotonic() < until and written < _MOST_WRITES:
            written += self._update(self._due.pop(), engine, now - now % _TICK, answers)

    def _update(
        self, uid: str, engine: Engine, tick: int, answers: dict[object, Refusal | None]
    ) -> bool:
        """Check one pod; is its condition written? `answers` has those of each kind of claim."""
        pod = engine.waiting_pod(uid)
        if pod is None or self._pod_status.refusal(uid) is None:
            return False
        kind = engine.kind_of_waiting(uid)
        if kind is None or kind not in answers:
            answers[kind] = engine.why(uid, tick)
        why = answers[kind]
        if why is None or self._pod_status.refusal(uid) == refusal_of(why):
            return False
        self._pod_status.refuse(pod, refusal_of(why))
        return True
