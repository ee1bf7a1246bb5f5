"""Changes of demand: must the shares of the quotas be worked out anew?

For the policies that share by request (`hierarchy`, `queues`). They check before every decision,
and mostly nothing has changed, so the check must be cheap.
"""

from collections.abc import Callable, Set

from aliquot.engine.model.pod import Pod
from aliquot.engine.queue.claim import Asks, Claim
from aliquot.engine.state import State


class Demand:
    """The versions of the books that the shares were last worked out for."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._requests = state.changes.requests.cursor()
        self._usage = state.changes.usage.cursor()
        self._nodes = state.changes.nodes.cursor()
        self._versions: tuple[int, ...] = ()
        self._measured: tuple[int, ...] = ()
        self.totals_moved = False
        """May there be more or less to share than when quotas had last changed?"""
        self._tree = -1

    def changed_quotas(self, unshared: Set[int]) -> dict[int, None] | None:
        """The quotas (by slot) whose request has changed; None if nothing has changed at all.

        A change of use in the `unshared` slots counts as well, and on nodes that take no new pods:
        these add to the total what runs on them. While bookings are tried, nothing counts as
        changed: what is set aside or tried will be put back.
        """
        state = self._state
        if state.ledger.speculative:
            return None
        feasible = state.placement.feasibility_version()
        versions = (state.tree.version, feasible, state.waiting.changes)
        moved = not unshared.isdisjoint(self._usage.read())
        moved = self._total_moved() or moved
        if not (self._requests or moved or versions != self._versions):
            return None
        self._versions = versions
        measured = state.tree.version, state.nodes.version, state.tree_capacity.version
        self.totals_moved, self._measured = moved or measured != self._measured, measured
        return dict.fromkeys(self._requests.read())

    def _total_moved(self) -> bool:
        """Has the use of a node changed that takes no new pods, or is lost?"""
        if not self._nodes:
            return False
        nodes, touched = self._state.nodes, self._nodes.read()
        if not (nodes.closed or nodes.lost):
            return False
        return any(slot in nodes.closed or slot in nodes.lost for slot in touched)

    def tree_changed(self) -> bool:
        """Have quotas changed since the last call?"""
        before, self._tree = self._tree, self._state.tree.version
        return before != self._tree


class Unsatisfiable:
    """What pods request that can never start, by slot and row: it does not count as demand.

    The core of a gang counts as a whole. The gang's other pods count by themselves, as they do once
    the core runs: what is demanded does not change when a gang starts. Each pod counts in its own
    quota, and `takes_pods` says of a quota whether pods may ever start in it.
    """

    def __init__(self, state: State, takes_pods: Callable[[str], bool]) -> None:
        self._state = state
        self._takes_pods = takes_pods
        self._versions = (-1, -1, -1)
        self._held: dict[Asks, bool] = {}
        """Whether empty nodes would hold the pods of a claim, while sums are brought up to date:
        very many claims ask for the same."""
        self.amounts: dict[int, dict[int, int]] = {}

    def refresh(self) -> bool:
        """Bring the sums up to date; True if they have changed."""
        state = self._state
        feasible = state.placement.feasibility_version()
        versions = (feasible, state.waiting.changes, state.tree.version)
        if versions == self._versions:
            return False
        self._versions = versions
        before, self.amounts = self.amounts, {}
        for claim, number in state.waiting.kinds():
            self._count(claim, number)
            for pod in claim.others:
                self._count_other(pod, number)
        self._held.clear()
        return before != self.amounts

    def _count_other(self, pod: Pod, number: int) -> None:
        """Count a pod beyond the core of so many gangs, as a claim of its own."""
        state, quota = self._state, self._state.tree.quota_of(pod)
        could_start = (
            quota in state.tree.quotas and not pod.blocked and self._takes_pods(str(quota))
        )
        if not (could_start and self._could_hold((state.placement.ask(pod),))):
            self._count(state.claims.of((pod,)), number)

    def _count(self, claim: Claim, number: int) -> None:
        """Count what so many claims like this one request, if they can never start."""
        tree = self._state.tree
        parts = [part for part in claim.parts or (claim,) if part.quota in tree.quotas]
        if not parts or (
            not claim.pods[0].blocked
            and self._could_hold(claim.asks)
            and all(self._takes_pods(str(part.quota)) for part in parts)
        ):
            return
        for part in parts:
            sums = self.amounts.setdefault(tree.slots[str(part.quota)], {})
            for row, amount in part.charge(None):
                sums[row] = sums.get(row, 0) + amount * number

    def _could_hold(self, asks: Asks) -> bool:
        """Would empty nodes hold such pods, each by itself?"""
        found = self._held.get(asks)
        if found is None:
            found = self._held[asks] = all(map(self._state.placement.could_hold, asks))
        return found
