"""When pods of the simulated cluster end: after their duration, or with their grace period.

Plays the kubelets. A terminating pod is gone when its grace period ends; on a node that is not
ready there is no kubelet to see to it, so it stays until the node is ready again or deleted.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping

from aliquot.mirror.pod_record import PodRecord


class Departures:
    """The moments at which pods end, and the terminating pods that are stuck on their node."""

    def __init__(
        self, records: Mapping[str, PodRecord], node_is_ready: Callable[[str], bool]
    ) -> None:
        self._records = records
        self._node_is_ready = node_is_ready
        self._moments: list[tuple[int, str]] = []
        """A heap; a pod whose end has changed is in it more than once."""
        self._terminating: dict[str, None] = {}
        """Pods that terminate on a node, in this order; some may be gone."""

    def add(self, record: PodRecord, now: int) -> None:
        """A pod waits, runs or terminates: note when it ends, if that is known."""
        if record.ends is not None:
            heapq.heappush(self._moments, (max(record.ends, now), record.pod.uid))
        if record.pod.terminating:
            self._terminating[record.pod.uid] = None

    def next(self) -> int | None:
        """When the next pod ends; None if none does."""
        return self._moments[0][0] if self._moments else None

    def due(self, now: int) -> Iterator[PodRecord]:
        """The pods that end now; they are to be ended one by one, as they come."""
        while self._moments and self._moments[0][0] <= now:
            _, uid = heapq.heappop(self._moments)
            record = self._records[uid]
            ends = record.ends if record.alive else None
            if ends is not None and ends <= now and not self._is_stuck(record):
                yield record

    def _is_stuck(self, record: PodRecord) -> bool:
        node = record.pod.node
        return record.pod.terminating and node is not None and not self._node_is_ready(node)

    def retry(self, nodes: set[str], now: int) -> None:
        """These nodes have changed: where one is ready, pods that were stuck on it end now."""
        for record in self.terminating_on(nodes):
            self.add(record, now)

    def terminating_on(self, nodes: set[str]) -> list[PodRecord]:
        """The pods that terminate on these nodes."""
        self._terminating = {uid: None for uid in self._terminating if self._records[uid].alive}
        there = (self._records[uid] for uid in self._terminating)
        return [record for record in there if record.pod.node in nodes]
