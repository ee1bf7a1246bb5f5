"""A waiting claim's place in the order: how many waiting pods are tried before it, asking for what.

By the turns and the importance of this moment, whether or not those before it could start: they
take room or right first if it comes free.
"""

from collections import Counter
from collections.abc import Iterable

from aliquot.engine.model.explanation import Place
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.claim_queue import precedes
from aliquot.engine.state import State


def place(state: State, claim: Claim, claims: Iterable[Claim]) -> Place:
    """How many pods of these claims, which wait, are before it: of all quotas, and of its own."""
    own, ahead, in_quota = state.waiting.position(claim), 0, 0
    asks, asks_in_quota = Counter[int](), Counter[int]()
    for other in claims:
        if other.uid == claim.uid or other.pods[0].blocked or other.missing:
            continue
        if not precedes(state.waiting.position(other), own):
            continue
        ahead += len(other.members)
        charge = dict(other.charge(None))
        asks.update(charge)
        if other.quota == claim.quota:
            in_quota += len(other.members)
            asks_in_quota.update(charge)
    names = state.resources.names
    return Place(
        *(ahead, in_quota),
        *({names[row]: amount for row, amount in each.items()} for each in (asks, asks_in_quota)),
    )
