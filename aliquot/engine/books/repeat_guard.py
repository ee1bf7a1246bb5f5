"""No going round in circles: until something changes from outside, no eviction is made again.

Rules that look sound one by one can chase each other: a small pod takes back its min from a large
one, a larger pod of its own quota takes its place, and the first owner takes back in turn. Owners
that put their pods back at once would keep that going for ever. So what is asked for and what runs
is remembered, as one number each, whenever somebody is evicted. Pods that differ only in name and
age count alike. A pod that ends, a changed quota or node: then it is a new situation.

Of the moves that make a circle, those for a claim within what it is guaranteed are the last to be
given up: they may be made a few times, the others once.
"""

from aliquot.engine.model.pod import Pod

_MASK = 2**64 - 1
_MOST_WHEN_OWED = 3

Move = tuple[int, int, int]
"""What is asked for, what runs before, what runs after."""


def fingerprint(*pods: Pod) -> int:
    """A number for these pods; numbers of several can be added and taken away."""
    return sum(
        hash((p.namespace, p.quota, p.shape, p.priority, p.preempts, p.preemptible)) for p in pods
    )


class RepeatGuard:
    """The moves made since something last changed from outside."""

    def __init__(self) -> None:
        self.present = 0
        """The mark of all pods there are, those on their way out aside."""
        self._made: dict[Move, int] = {}

    def move(self, waiting: int, claim: tuple[Pod, ...], victims: tuple[Pod, ...]) -> Move:
        """What it would be to evict these for that claim."""
        runs = self.present - waiting
        after = runs + fingerprint(*claim) - fingerprint(*victims)
        return self.present & _MASK, runs & _MASK, after & _MASK

    def record(self, move: Move) -> None:
        """It is made."""
        self._made[move] = self._made.get(move, 0) + 1

    def repeats(self, move: Move, owed: bool) -> bool:
        """Has it been made as often as it may be?"""
        return self._made.get(move, 0) >= (_MOST_WHEN_OWED if owed else 1)

    def forget(self) -> None:
        """Something has changed from outside."""
        self._made.clear()
