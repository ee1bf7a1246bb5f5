"""Keeps the numbers in the messages of waiting pods up to date.

The engine reports why a pod waits when the reason changes. The numbers in the message become stale
when quotas are edited and other pods start or end. So every waiting pod is checked again from time
to time, a few at a time, and its condition is written where the message has changed.
"""

import time

from aliquot.dialects.quota_index import QuotaIndex
from aliquot.engine import Engine
from aliquot.kube.control.intake import Intake
from aliquot.kube.control.pod_status import PodStatusWriter, refusal_of

_ROUND_SECONDS = 15.0
"""How old a message may become: short for a person who looks, long beside the time of a round."""
_AT_ONCE = 0.02
"""Seconds that one call may take: a cycle is delayed by no more than that."""


class StaleReasons:
    """Checks all waiting pods in rounds."""

    def __init__(self, pod_status: PodStatusWriter) -> None:
        self._pod_status = pod_status
        self._due: list[str] = []
        self._next_round = 0.0
        self._quota_index = QuotaIndex()

    def refresh(self, engine: Engine, intake: Intake) -> None:
        """Check the next few pods; all of them anew if a quota was edited."""
        until = time.monotonic() + _AT_ONCE
        if intake.mirror.quota_index is not self._quota_index:
            self._quota_index, self._due, self._next_round = intake.mirror.quota_index, [], 0.0
        if not self._due and time.monotonic() >= self._next_round:
            self._next_round = time.monotonic() + _ROUND_SECONDS
            self._due = [uid for uid, shown in intake.pods.shown.items() if shown.refusal]
        while self._due and time.monotonic() < until:
            self._update(self._due.pop(), engine, intake)

    def _update(self, uid: str, engine: Engine, intake: Intake) -> None:
        shown, record = intake.pods.shown.get(uid), intake.mirror.records.get(uid)
        if shown is None or record is None or shown.refusal is None or not engine.is_waiting(uid):
            return
        why = engine.why(uid)
        if why is not None and refusal_of(why) != shown.refusal:
            shown.refusal = refusal_of(why)
            self._pod_status.refuse(record.pod, shown.refusal, known=True)
