"""nos elastic quotas: as `capacity`, and what is borrowed is shared fairly, by preemption.

Each quota is guaranteed a share of the idle min in proportion to its own min.
"""

from aliquot.engine.policies.capacity.borrowing import Borrowing
from aliquot.engine.policies.fair.reclaim import FairReclaim
from aliquot.engine.policies.fair.report import FairReport
from aliquot.engine.policies.fair.turns import FairTurns
from aliquot.engine.policies.interface import Policy
from aliquot.engine.state import State


def fair(state: State) -> Policy:
    """The policy of quotas that share idle min in proportion to their own min."""
    borrowing = Borrowing(state, state.knobs.fair.borrow)
    reclaim, turns = FairReclaim(state, borrowing), FairTurns(state, borrowing)
    return Policy(borrowing, reclaim, FairReport(state), turns)
