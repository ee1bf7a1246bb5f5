"""The waiting pods as rows, in order, with the reason that the engine gives now.

Pods that are alike have one row, and so has a gang. The engine is asked anew where something may
have changed, a few rows a frame: asking for all of them would take longer than a frame may.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from aliquot.dashboard.occupancy import Occupancy, takes
from aliquot.engine import SECOND, Engine, Pod

MOST_ROWS = 400
"""Rows that are told: more than a person reads, and at some 300 bytes each a small message."""
_ASKING_SECONDS = 0.01
"""How long the engine may be asked for reasons in one frame: some thirty rows, and an update is
still told within 0.1 s."""


@dataclass(slots=True)
class _Answer:
    reason: str
    message: str
    version: int


class WaitingList:
    """Rows of pods that wait alike; remembers what the engine said of each."""

    def __init__(self) -> None:
        self.version = 0
        """Counted up by the caller whenever the engine has heard of a change."""
        self.is_asking = False
        """Is there a row that the engine has not been asked of yet?"""
        self._answers: dict[str, _Answer] = {}
        self._groups: list[list[Pod]] = []
        self._grouped_at = -1

    def rows(
        self, engine: Engine, occupancy: Occupancy, now: int
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """By the first pod of each row: those that are next first."""
        if self._grouped_at != occupancy.waiting_version:
            self._grouped_at = occupancy.waiting_version
            self._groups = _grouped(engine, occupancy)
            first = {each[0].uid for each in self._groups}
            self._answers = {uid: each for uid, each in self._answers.items() if uid in first}
        self._ask(engine, now)
        for order, pods in enumerate(self._groups[:MOST_ROWS]):
            first_pod = pods[0]
            answer = self._answers.get(first_pod.uid)
            yield (
                first_pod.path,
                {
                    "key": first_pod.path,
                    "order": order,
                    "pod": first_pod.path,
                    "pods": len(pods),
                    "gang": first_pod.gang,
                    "quota": engine.quota_of(first_pod),
                    "priority": first_pod.priority,
                    "since": first_pod.created / SECOND if first_pod.created else None,
                    "asks": takes(first_pod),
                    "reason": answer.reason if answer else None,
                    "message": answer.message if answer else "",
                },
            )

    def _ask(self, engine: Engine, now: int) -> None:
        """Ask for the rows whose answer is oldest, the first of them first."""
        shown = [pods[0] for pods in self._groups[:MOST_ROWS]]
        until = time.thread_time() + _ASKING_SECONDS
        for pod in sorted(shown, key=lambda pod: self._age(pod.uid)):
            answer = self._answers.get(pod.uid)
            if answer and answer.version == self.version:
                break
            refusal = engine.why(pod.uid, now)
            reason, message = (refusal.reason, refusal.message) if refusal else ("", "it can start")
            self._answers[pod.uid] = _Answer(reason, message, self.version)
            if time.thread_time() > until:
                break
        self.is_asking = any(pod.uid not in self._answers for pod in shown)

    def _age(self, uid: str) -> int:
        answer = self._answers.get(uid)
        return -1 if answer is None else answer.version


def _grouped(engine: Engine, occupancy: Occupancy) -> list[list[Pod]]:
    """Waiting pods by gang, or by what makes them alike, in the order of their first claims.

    A row is of one namespace: it is shown to those who may see that one.
    """
    groups: dict[object, list[Pod]] = {}
    for uids in engine.waiting_order():
        for uid in uids:
            pod = occupancy.waiting.get(uid)
            if pod is not None:
                kind = pod.gang or engine.kind_of_waiting(uid) or uid
                groups.setdefault((pod.namespace, kind), []).append(pod)
    return list(groups.values())
