"""The waiting claims in the order in which they would be tried now.

By the turns and the importance of this moment, as if none of them could start: a start moves the
turns of its groups.
"""

from collections.abc import Iterable, Iterator

from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State


def waiting_order(state: State, claims: Iterable[Claim]) -> Iterator[Claim]:
    """Each claim once; those that cannot start whatever room there is come last, oldest first."""
    listed = list(claims)
    yield from state.waiting.in_turn(each for each in listed if not _is_blocked(each))
    yield from sorted(filter(_is_blocked, listed), key=lambda each: each.key)


def _is_blocked(claim: Claim) -> bool:
    return claim.missing > 0 or any(pod.blocked for pod in claim.members)
