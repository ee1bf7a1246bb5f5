"""The repeat guard: until the cluster changes, no eviction is made a second time.

Preemption rules that are sound one by one can form a cycle: a small pod reclaims its min from a
large one, a larger pod of the same quota takes its place, and the first owner reclaims in turn.
With controllers that recreate evicted pods at once, that would never end. So every eviction is
remembered as a move: a fingerprint of all pods, of those that ran before and of those that run
after. Pods that differ only in name and age have the same fingerprint. When a pod ends, or a quota
or node changes, all moves are forgotten.

A move for a claim that is owed (within its guarantee) may be made a few times, any other once: in a
cycle, the moves that are not owed are given up first.

Room and right are held for a claim until its victims are gone; how evenly pods are spread is not.
Where it matters, pods that come in the place of its victims can keep it from starting, each time
with other victims. So a claim with rules about other pods preempts a few times while it waits.
"""

from functools import lru_cache
from hashlib import blake2b

from aliquot.engine.books.changes import Changes
from aliquot.engine.model.pod import Pod

_MASK = 2**64 - 1
_MOST_WHEN_OWED = 3
"""More than once, so that a cycle ends with the owed claim running; few, as each evicts pods."""
_MOST_BY_ONE = 3
"""As many: others may take a turn in between that leave it nothing, and pods that are late."""

Move = tuple[int, int, int]
"""The fingerprints of all pods, of those that run before, of those that run after."""


def fingerprint(*pods: Pod) -> int:
    """A number for these pods, the sum of theirs: it can be updated by adding and subtracting."""
    total = 0
    for p in pods:
        total += _number((p.namespace, p.quota, p.shape, p.priority, p.preempts, p.preemptible))
    return total


@lru_cache(maxsize=65_536)
def _number(content: tuple[object, ...]) -> int:
    """64 bits for what pods are alike in, the same in every process, which `hash` is not.

    Computed once for each content: of those, a cluster has far fewer than the cache holds.
    """
    return int.from_bytes(blake2b(repr(content).encode(), digest_size=8).digest())


class RepeatGuard:
    """The moves made since the cluster last changed."""

    def __init__(self, changes: Changes) -> None:
        self._outside = changes.outside.cursor()
        self.present = 0
        """The fingerprint of all pods, except those terminating or being evicted."""
        self._made: dict[Move, int] = {}
        self._by_claim: dict[str, int] = {}
        """How often each claim with rules about other pods has preempted while it waits."""

    def move(self, waiting: int, claim: tuple[Pod, ...], victims: tuple[Pod, ...]) -> Move:
        """Evicting these victims for that claim; `waiting` is the fingerprint of waiting pods."""
        runs = self.present - waiting
        after = runs + fingerprint(*claim) - fingerprint(*victims)
        return self.present & _MASK, runs & _MASK, after & _MASK

    def record(self, move: Move, by: str | None = None) -> None:
        """Count a move that is made; `by` the claim of this uid, if it has rules about pods."""
        self.refresh()
        self._made[move] = self._made.get(move, 0) + 1
        if by is not None:
            self._by_claim[by] = self._by_claim.get(by, 0) + 1

    def repeats(self, move: Move, owed: bool, by: str | None = None) -> bool:
        """Has the move been made as often as it may be, or the claim made as many as it may?"""
        self.refresh()
        if by is not None and self._by_claim.get(by, 0) >= _MOST_BY_ONE:
            return True
        return self._made.get(move, 0) >= (_MOST_WHEN_OWED if owed else 1)

    def refresh(self) -> None:
        """Forget all moves if the cluster has changed: then every move may be made again."""
        if self._outside.read():
            self._made.clear()
            self._by_claim.clear()
