"""When a parked claim is tried again: when something that it waits for has changed.

Freed room on a node and freed right in a quota wake the claims that watch for them. Whether a claim
could find victims depends on too much to be watched piece by piece: claims that found none are
tried again, a bounded number in each cycle, whenever a pod has ended or begun to borrow.
"""

from aliquot.engine.model.reasons import BORROWERS, ROOM, Watch
from aliquot.engine.placement.best_node import Ask
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

_RETRIES_PER_CYCLE = 200
"""How many claims without victims are tried again in one cycle.

Each costs a victim search, at most some 15 ms at 5,000 nodes and 50,000 pods (p99 of `aliquot
bench`), so this bounds a cycle to a few seconds. The rest follow in the next cycles, those parked
longest first.
"""


class Wakeups:
    """Wakes lanes of waiting claims."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._retries = 0
        """How many claims that found no victims are still to be tried again."""
        self._min_runtime_due: int | None = None
        """When the next pod will have run for `minRuntime`, if a claim waits for that."""

    def deadline(self, now: int) -> int | None:
        """When a claim is to be woken even without an event."""
        return now if self._retries else self._min_runtime_due

    def wake_by_freed(self) -> None:
        """Wake the claims that watch a quota, node or GPU quota in which something came free."""
        ledger, waiting = self.state.ledger, self.state.waiting
        for namespace in sorted(ledger.freed_gpus):
            waiting.wake(waiting.parked(Watch(gpus=namespace)))
        ledger.freed_gpus.clear()
        if not ledger.freed_nodes and not ledger.freed_quotas:
            return
        nodes, quotas = ledger.freed_nodes, ledger.freed_quotas
        ledger.freed_nodes, ledger.freed_quotas = set(), set()
        for slot in quotas:
            waiting.wake(waiting.parked(Watch(quota=self.state.tree.slots.names[slot])))
        if ledger.holding:  # a nomination does not count against its own claim: wake all
            waiting.wake(waiting.parked(ROOM))
        fits: dict[Ask, bool] = {}
        placement = self.state.placement
        for lane in waiting.parked(ROOM):
            head = lane.head
            if head is None:
                continue
            asks = (*head.asks, *(placement.ask(pod.shape) for pod in head.others))
            for ask in asks:
                if ask not in fits:
                    fits[ask] = placement.has_room(ask, nodes)
            if any(fits[ask] for ask in asks) or self._could_preempt(head, nodes):
                waiting.wake([lane])

    def wake_for_new_victims(self, now: int) -> None:
        """Wake claims that found no victims, if there may be some now."""
        self._wake_by_newly_bound()
        waiting, due = (
            self.state.waiting,
            self._min_runtime_due is not None and now >= self._min_runtime_due,
        )
        if self.state.dirty or due:
            self._retries = len(waiting.parked(BORROWERS))
            if due:
                waiting.wake(waiting.parked(ROOM))
                self._min_runtime_due = None
            self.state.dirty = False
        waiting.wake(waiting.parked(BORROWERS)[: min(self._retries, _RETRIES_PER_CYCLE)])
        self._retries = max(self._retries - _RETRIES_PER_CYCLE, 0)

    def _wake_by_newly_bound(self) -> None:
        """Wake the claims of a quota in which a pod of lower priority was bound: a new victim."""
        started, self.state.newly_bound = self.state.newly_bound, {}
        waiting = self.state.waiting
        watches = [BORROWERS, *(Watch(quota=quota) for quota in started)] if started else []
        for lane in (lane for watch in watches for lane in waiting.parked(watch)):
            head = lane.head
            if head is not None and head.priority > started.get(head.quota or "", head.priority):
                waiting.wake([lane])

    def note_min_runtime(self, now: int) -> None:
        """Note when the next pod will have run for `minRuntime`, and so may be evicted."""
        min_runtime = self.state.knobs.eviction.min_runtime
        if not min_runtime:
            return
        started = self.state.running.started
        young = started[(self.state.running.node >= 0) & (started + min_runtime > now)]
        if len(young):
            due = int(young.min()) + min_runtime
            self._min_runtime_due = (
                due if self._min_runtime_due is None else min(self._min_runtime_due, due)
            )

    def _could_preempt(self, claim: Claim, nodes: set[int]) -> bool:
        """Could a claim without a quota preempt on these nodes, where room has come free?

        Claims with a quota are woken by `wake_for_new_victims` instead.
        """
        state = self.state
        return (
            claim.quota is None
            and claim.preempts
            and any(
                state.pods[uid].priority < claim.priority
                and state.ledger.entries[uid].booking.quota is None
                for node in nodes
                for uid in state.ledger.by_node.get(node, ())
            )
        )
