"""KEP-9 capacity scheduling: min is guaranteed, and idle min may be borrowed up to max.

A claim may start while its quota stays within max and all quotas together stay within the sum of
min. Claims within their quota's min come first; then by priority, then age.
"""

from aliquot.engine.policies.capacity.borrowing import Borrowing
from aliquot.engine.policies.capacity.reclaim import MinReclaim
from aliquot.engine.policies.capacity.report import SharedMinReport
from aliquot.engine.policies.capacity.turns import OwedFirst
from aliquot.engine.policies.interface import Policy
from aliquot.engine.state import State


def capacity(state: State) -> Policy:
    """The policy of flat quotas with min and max."""
    borrowing = Borrowing(state, state.knobs.capacity.borrow)
    reclaim, report = MinReclaim(state, borrowing), SharedMinReport(state)
    return Policy(borrowing, reclaim, report, OwedFirst(state, borrowing))
