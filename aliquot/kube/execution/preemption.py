"""A preemption that is carried out: which evictions are sent at once, and which wait for others.

A gang goes whole. Where disruption budgets refuse one of its pods, the others are not evicted
before that one is: else the claim would start in their room, nothing would ask the one to go any
longer, and the gang would be left with too few pods to run.
"""

from collections.abc import Callable

from aliquot.engine import Evict, Nominate, Pod


class Preemption:
    """A nomination whose evictions are not all answered yet."""

    def __init__(self, decision: Nominate, is_refused: Callable[[Pod], bool]) -> None:
        """`is_refused` says of a pod whether disruption budgets do not allow its eviction now."""
        self.decision = decision
        self.unanswered = {each.pod.uid for each in decision.victims}
        """The uids of the victims whose eviction is not yet answered."""
        refused = [each.pod for each in decision.victims if each.pod.gang and is_refused(each.pod)]
        self._refused = {pod.uid: str(pod.gang) for pod in refused}
        self._waiting = {
            each.pod.uid: each
            for each in decision.victims
            if each.pod.gang in self._refused.values() and each.pod.uid not in self._refused
        }

    def first(self) -> list[Evict]:
        """The evictions that wait for no other."""
        return [each for each in self.decision.victims if each.pod.uid not in self._waiting]

    def answer(self, uid: str) -> list[Evict]:
        """A pod was evicted: the evictions that are to be sent after it."""
        self.unanswered.discard(uid)
        return self._freed(uid)

    def call_off(self, uid: str) -> list[Evict]:
        """A pod will not be evicted: the evictions that waited for it will not be sent."""
        self.unanswered.discard(uid)
        freed = self._freed(uid, given_up=True)
        self.unanswered -= {each.pod.uid for each in freed}
        return freed

    def _freed(self, uid: str, *, given_up: bool = False) -> list[Evict]:
        gang = self._refused.pop(uid, None)
        if gang is None or (gang in self._refused.values() and not given_up):
            return []
        freed = [each for each in self._waiting.values() if each.pod.gang == gang]
        for each in freed:
            del self._waiting[each.pod.uid]
        return freed
