"""When refused claims are tried again: when something has changed that they wait for.

Room or right that was given back wakes those who watch for it. Whether others could make way for a
claim depends on more than can be watched one by one: claims that found nobody are asked again, a
few at a time, whenever anybody has ended or begun to borrow.
"""

from aliquot.engine.model.reasons import BORROWERS, ROOM, Watch
from aliquot.engine.placement.best_node import Ask
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

_MOST_HOPEFUL = 200
"""How many claims are tried again in one cycle because something has changed somewhere.

Each costs a search for victims; those who were longest without one come first.
"""


class Wakeups:
    """Wakes lanes of waiting claims."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._hopeful = 0
        """How many claims that found nobody to take back from are still to be tried again."""
        self._ripe: int | None = None
        """When the next pod will have run for `minRuntime`, if a claim waits for that."""

    def deadline(self, now: int) -> int | None:
        """When somebody is to be woken, even if nothing happens before."""
        return now if self._hopeful else self._ripe

    def by_what_came_free(self) -> None:
        """Have the claims tried again for which something has been given back."""
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
        if ledger.holding:  # what is held may not count against its claimant: ask everybody
            waiting.wake(waiting.parked(ROOM))
        has_room: dict[Ask, bool] = {}
        placement = self.state.placement
        for lane in waiting.parked(ROOM):
            head = lane.head
            if head is None:
                continue
            asks = (*head.asks, *(placement.ask(pod.shape) for pod in head.others))
            for ask in asks:
                if ask not in has_room:
                    has_room[ask] = placement.has_room(ask, nodes)
            if any(has_room[ask] for ask in asks) or self._could_preempt(head, nodes):
                waiting.wake([lane])

    def by_what_was_stirred(self, now: int) -> None:
        """Try claims again that found nobody to take back from, if that may have changed."""
        self._by_what_started()
        waiting, ripe = self.state.waiting, self._ripe is not None and now >= self._ripe
        if self.state.stirred or ripe:
            self._hopeful = len(waiting.parked(BORROWERS))
            if ripe:
                waiting.wake(waiting.parked(ROOM))
                self._ripe = None
            self.state.stirred = False
        waiting.wake(waiting.parked(BORROWERS)[: min(self._hopeful, _MOST_HOPEFUL)])
        self._hopeful = max(self._hopeful - _MOST_HOPEFUL, 0)

    def _by_what_started(self) -> None:
        """A pod of its own quota that has started could make way for a claim above it."""
        started, self.state.started = self.state.started, {}
        waiting = self.state.waiting
        watches = [BORROWERS, *(Watch(quota=quota) for quota in started)] if started else []
        for lane in (lane for watch in watches for lane in waiting.parked(watch)):
            head = lane.head
            if head is not None and head.priority > started.get(head.quota or "", head.priority):
                waiting.wake([lane])

    def note_when_ripe(self, now: int) -> None:
        """A claim that found nobody may find somebody once more pods have run long enough."""
        spared = self.state.knobs.eviction.min_runtime
        if not spared:
            return
        started = self.state.running.started
        young = started[(self.state.running.node >= 0) & (started + spared > now)]
        if len(young):
            ripe = int(young.min()) + spared
            self._ripe = ripe if self._ripe is None else min(self._ripe, ripe)

    def _could_preempt(self, claim: Claim, nodes: set[int]) -> bool:
        """May what was given back be enough now for a claim without a quota, if others go, too?

        Claims with a quota wait for others to give in any case; see `by_what_was_stirred`.
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
