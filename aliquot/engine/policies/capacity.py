"""KEP-9 capacity scheduling: min is guaranteed, what is idle of it may be borrowed up to max."""

from collections.abc import Iterator

from aliquot.engine.claim import Claim
from aliquot.engine.config import Knobs
from aliquot.engine.offer import Offer, Rights
from aliquot.engine.policies import giving
from aliquot.engine.policies.borrowing import Borrowing
from aliquot.engine.state import State


class Capacity(Borrowing):
    """The policy of flat quotas with min and max."""

    def __init__(self, knobs: Knobs) -> None:
        super().__init__(knobs.capacity.borrow)

    def offers(
        self, state: State, claim: Claim, node_class: str | None, rights: Rights, now: int
    ) -> Iterator[list[Offer]]:
        """Who gives back: see `policies.giving`."""
        return giving.offers(state, claim, node_class, rights, now, self.spare)
