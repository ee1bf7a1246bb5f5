"""Why pods wait, with the numbers of now.

The engine says why a pod waits when that is news. Its numbers grow old: quotas are edited, others
come and go. So each waiting pod is looked at again now and then, a few at a time, and what is said
of it is written anew where it is no longer so.
"""

import time

from aliquot.dialects.quota_index import QuotaIndex
from aliquot.engine import Engine
from aliquot.kube.control.intake import Intake
from aliquot.kube.control.pod_status import PodStatusWriter, refusal_of

_ROUND = 15.0
"""How many seconds a message may be old before it is looked at again."""
_AT_ONCE = 0.02
"""For how many seconds messages are looked at, each time."""


class Reasons:
    """Goes round all waiting pods, and begins again."""

    def __init__(self, marks: PodStatusWriter) -> None:
        self._pod_status = marks
        self._turn: list[str] = []
        self._next_round = 0.0
        self._quota_index = QuotaIndex()

    def look(self, engine: Engine, intake: Intake) -> None:
        """Look at the next few."""
        until = time.monotonic() + _AT_ONCE
        if intake.mirror.quota_index is not self._quota_index:  # quotas were edited
            self._quota_index, self._turn, self._next_round = intake.mirror.quota_index, [], 0.0
        if not self._turn and time.monotonic() >= self._next_round:
            self._next_round = time.monotonic() + _ROUND
            self._turn = [uid for uid, said in intake.pods.said.items() if said.refusal is not None]
        while self._turn and time.monotonic() < until:
            self._renew(self._turn.pop(), engine, intake)

    def _renew(self, uid: str, engine: Engine, intake: Intake) -> None:
        said = intake.pods.said.get(uid)
        if said is None or said.refusal is None or uid not in engine.state.waiting:
            return
        why = engine.why(uid)
        if why is not None and refusal_of(why) != said.refusal:
            said.refusal = refusal_of(why)
            self._pod_status.refuse(engine.state.pods[uid], said.refusal, known=True)
