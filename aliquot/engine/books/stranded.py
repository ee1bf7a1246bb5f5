"""Stranded pods: past their grace period on a node that is not ready, where nothing can end them.

Their kubelet cannot say that they have ended. The room they hold may still be in use; but they are
not charged to their quota, so that the pods that replace them do not count as borrowing.
"""

from aliquot.engine.model.node import Node
from aliquot.engine.model.pod import Pod


class StrandedPods:
    """The pods that terminate on nodes that are not ready, and those past their grace period."""

    def __init__(self) -> None:
        self._gone_by: dict[str, int] = {}
        """The end of the grace period of each."""
        self._past: set[str] = set()

    def __contains__(self, uid: str) -> bool:
        return uid in self._past

    def note(self, pod: Pod, node: Node | None) -> bool:
        """Note how a bound pod is; returns whether it was stranded and is not any more."""
        if pod.gone_by is not None and pod.terminating and node is not None and not node.ready:
            self._gone_by[pod.uid] = pod.gone_by
            return False
        return self.drop(pod.uid)

    def drop(self, uid: str) -> bool:
        """Forget a pod; was it stranded?"""
        self._gone_by.pop(uid, None)
        was = uid in self._past
        self._past.discard(uid)
        return was

    def strand(self, now: int) -> list[str]:
        """The pods whose grace period has ended since this was last called."""
        if not self._gone_by:
            return []
        due = [uid for uid, end in self._gone_by.items() if end <= now and uid not in self._past]
        self._past.update(due)
        return sorted(due)

    def deadline(self) -> int | None:
        """When the next pod will be past its grace period."""
        ends = (end for uid, end in self._gone_by.items() if uid not in self._past)
        return min(ends, default=None)
