"""When a parked claim is tried again: when something that it waits for has changed.

Freed room on a node and freed right in a quota wake the claims that watch for them. Whether a claim
could find victims depends on too much to be watched piece by piece: claims that found none are
tried again, a bounded number in each cycle, whenever a pod has ended or begun to borrow.
"""

from collections.abc import Callable
from heapq import nsmallest

from aliquot.engine.books.changes import Freed
from aliquot.engine.model.pod_rules import PodRules
from aliquot.engine.model.reasons import BORROWERS, ROOM, VICTIMS, Watch
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

    def __init__(self, state: State, waits_for_victims: Callable[[Claim], bool]) -> None:
        self.state = state
        self._waits_for_victims = waits_for_victims
        """Does a pod leave that this nominated claim waits for?"""
        self._freed = state.changes.freed.cursor()
        self._bound = state.changes.bound.cursor()
        self._victims = state.changes.victims.cursor()
        self._retries = 0
        """How many claims that found no victims are still to be tried again."""
        self._min_runtime_due: int | None = None
        """When the next pod will have run for `minRuntime`, if a claim waits for that."""

    @property
    def unfinished(self) -> bool:
        """Are claims left that are to be tried again in the next cycle?"""
        return bool(self._retries)

    def deadline(self) -> int | None:
        """When a pod becomes evictable for which a claim waits."""
        return self._min_runtime_due

    def wake_by_freed(self) -> None:
        """Wake the claims that watch a quota, node or GPU quota in which something came free."""
        if not self._freed:
            return
        waiting, freed = self.state.waiting, self._freed.read()
        self._wake_by_volumes([each.volumes for each in freed if each.volumes])
        freed = [each for each in freed if each != Freed(volumes=each.volumes)]
        self._wake_nominated(freed)
        for namespace in sorted({each.gpus for each in freed if each.gpus is not None}):
            waiting.wake(waiting.parked(Watch(gpus=namespace)))
        for slot in sorted({slot for each in freed for slot in each.quotas}):
            waiting.wake(waiting.parked(Watch(quota=self.state.tree.slots.names[slot])))
        nodes = {node for each in freed for node in each.nodes}
        if nodes or any(each.quotas for each in freed):
            self._wake_by_room(nodes)

    def _wake_by_volumes(self, news: list[tuple[str, ...]]) -> None:
        """Wake the claims that wait for news of these volumes, claims and classes."""
        found = dict.fromkeys(each for several in news for each in several)
        for each in self.state.volumes.widened(found):
            self.state.waiting.wake(self.state.waiting.parked(Watch(volumes=each)))

    def _wake_nominated(self, freed: list[Freed]) -> None:
        """Wake the nominated claims that could start now.

        What came free lets about as many start. So it wakes those on whose nodes it did, those
        whose victims are all gone, and as many of the most important, which may take what was freed
        for others: not all, or each of a thousand departures would try a thousand claims.
        """
        lanes = self.state.waiting.parked(VICTIMS)
        if not lanes:
            return
        nodes = {node for each in freed for node in each.nodes}
        if not all(each.nodes for each in freed):
            self.state.waiting.wake(lanes)
            return
        heads = [(lane, head) for lane in lanes if (head := lane.head) is not None]
        first = nsmallest(len(freed), heads, key=lambda each: each[1].key)
        entries = self.state.ledger.entries
        woken = [
            lane
            for lane, head in heads
            if not nodes.isdisjoint(entries[uid].node for uid in head.uids())
            or not self._waits_for_victims(head)
        ]
        self.state.waiting.wake((*woken, *(lane for lane, _ in first)))

    def _wake_by_room(self, nodes: set[int]) -> None:
        """Wake the claims that wait for room and could use what came free on these nodes."""
        waiting = self.state.waiting
        if self.state.ledger.holding:  # a nomination does not count against its own claim: wake all
            waiting.wake(waiting.parked(ROOM))
        fits: dict[tuple[Ask, PodRules], bool] = {}
        placement = self.state.placement
        for lane in waiting.parked(ROOM):
            head = lane.head
            if head is None:
                continue
            asks = {(placement.ask(pod.shape), pod.rules): None for pod in head.members}
            for ask, rules in asks:
                if (ask, rules) not in fits:
                    fits[ask, rules] = placement.has_room(ask, nodes, rules)
            if any(fits[each] for each in asks) or self._could_preempt(head, nodes):
                waiting.wake([lane])

    def wake_for_new_victims(self, now: int, unfinished: bool) -> None:
        """Wake claims that found no victims, if there may be some now.

        Not while claims are left over from the last cycle: those come first, or the last of them
        would never be tried.
        """
        self._wake_by_newly_bound()
        waiting, due = (
            self.state.waiting,
            self._min_runtime_due is not None and now >= self._min_runtime_due,
        )
        if self._victims.read() or due:
            self._retries = len(waiting.parked(BORROWERS))
            if due:
                waiting.wake(waiting.parked(ROOM))
                self._min_runtime_due = None
        if unfinished:
            return
        waiting.wake(waiting.parked(BORROWERS)[: min(self._retries, _RETRIES_PER_CYCLE)])
        self._retries = max(self._retries - _RETRIES_PER_CYCLE, 0)

    def _wake_by_newly_bound(self) -> None:
        """Wake the claims of a quota in which a pod of lower priority was bound: a new victim."""
        lowest: dict[str, int] = {}
        for quota, priority in self._bound.read():
            lowest[quota] = min(lowest.get(quota, priority), priority)
        waiting = self.state.waiting
        watches = [BORROWERS, *(Watch(quota=quota) for quota in lowest)] if lowest else []
        for lane in (lane for watch in watches for lane in waiting.parked(watch)):
            head = lane.head
            if head is not None and head.priority > lowest.get(head.quota or "", head.priority):
                waiting.wake([lane])

    def note_min_runtime(self, now: int) -> None:
        """Note when the next pod will have run for `minRuntime`, and so may be evicted."""
        min_runtime = self.state.knobs.eviction.min_runtime
        if not min_runtime:
            return
        started = self.state.bound_pods.started
        young = started[(self.state.bound_pods.node >= 0) & (started + min_runtime > now)]
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
