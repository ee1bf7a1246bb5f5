"""When a parked claim is tried again: when something that it waits for has changed.

Freed room on a node and freed right in a quota wake the claims that watch for them. Whether a claim
could find victims depends on too much to be watched piece by piece: claims that found none are all
due again whenever a pod has ended or begun to borrow. How many of them are tried in one cycle is
bounded as for all claims (`queue/effort`).
"""

from collections.abc import Callable
from heapq import nsmallest

from aliquot.engine.books.changes import Freed
from aliquot.engine.model.reasons import BORROWERS, MOVES, ROOM, RULES, VICTIMS, Watch
from aliquot.engine.placement.ask import Ask
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State


class Wakeups:
    """Wakes lanes of waiting claims."""

    def __init__(self, state: State, waits_for_victims: Callable[[Claim], bool]) -> None:
        self.state = state
        self._waits_for_victims = waits_for_victims
        """Does a pod leave that this nominated claim waits for?"""
        self._freed = state.changes.freed.cursor(deciding=True)
        self._bound = state.changes.bound.cursor(deciding=True)
        self._victims = state.changes.victims.cursor(deciding=True)
        self._outside = state.changes.outside.cursor(deciding=True)
        self._retry = False
        """Are the claims that found no victims to be tried again?"""
        self._may_repeat = False
        """Are those that the repeat guard has refused? It has forgotten their moves by then."""
        self._min_runtime_due: int | None = None
        """When the next pod will have run for `minRuntime`, if a claim waits for that."""

    def deadline(self) -> int | None:
        """When a pod becomes evictable for which a claim waits."""
        return self._min_runtime_due

    def wake_by_freed(self) -> None:
        """Wake the claims that watch a quota, node or GPU quota in which something came free."""
        freed = self._freed.read()
        if not freed:
            return
        waiting = self.state.waiting
        self._wake_by_volumes(freed)
        freed = [each for each in freed if each != Freed(volumes=each.volumes)]
        self._wake_nominated(freed)
        for namespace in sorted({each.gpus for each in freed if each.gpus is not None}):
            waiting.wake(waiting.parked(Watch(gpus=namespace)))
        for slot in sorted({slot for each in freed for slot in each.quotas}):
            waiting.wake(waiting.parked(Watch(quota=self.state.tree.slots.names[slot])))
        nodes = {node for each in freed for node in each.nodes}
        if nodes or any(each.quotas for each in freed):
            self._wake_by_room(nodes)

    def _wake_by_volumes(self, freed: list[Freed]) -> None:
        """Wake the claims that wait for news of these volumes, claims and classes."""
        news = [each for one in freed for each in one.volumes]
        for each in self.state.volumes.widened(news) if news else ():
            self.state.waiting.wake(self.state.waiting.parked(Watch(volumes=each)))

    def wake_by_rules(self) -> bool:
        """Wake the claims that pods which have come, or changed, leave a node by their rules.

        Pods that leave wake them like all that wait for room.
        """
        placement, woken = self.state.placement, []
        for lane in self.state.waiting.parked(RULES):
            head = lane.head
            asks = () if head is None else dict.fromkeys(head.asks)
            now = tuple(placement.rule_moment(ask) for ask in asks)
            if now != lane.rules_seen:
                lane.rules_seen = now
                if any(placement.pick(ask) is not None for ask in asks):
                    woken.append(lane)
        self.state.waiting.wake(woken)
        return bool(woken)

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
        fits: dict[Ask, bool] = {}
        placement = self.state.placement
        for lane in waiting.parked(ROOM):
            head = lane.head
            if head is None:
                continue
            asks = (*head.asks, *(placement.ask(pod) for pod in head.others))
            for ask in asks:
                if ask not in fits:
                    fits[ask] = placement.has_room(ask, nodes)
            if any(fits[ask] for ask in asks) or self._could_preempt(head, nodes):
                waiting.wake([lane])

    def wake_for_new_victims(self, now: int, unfinished: bool) -> None:
        """Wake claims that found no victims, if there may be some now.

        Not while claims are left over from the last cycle: those come first, or the last of them
        would never be tried.
        """
        self._wake_by_newly_bound()
        waiting = self.state.waiting
        due = self._min_runtime_due is not None and now >= self._min_runtime_due
        if due:
            waiting.wake(waiting.parked(ROOM))
            self._min_runtime_due = None
        self._retry = bool(self._victims.read()) or due or self._retry
        self._may_repeat = bool(self._outside.read()) or self._may_repeat
        if self._retry and not unfinished:
            waiting.wake(waiting.parked(BORROWERS))
            self._retry = False
        if self._may_repeat and not unfinished:
            waiting.wake(waiting.parked(MOVES))
            self._may_repeat = False

    def _wake_by_newly_bound(self) -> None:
        """Wake the claims of a quota in which a pod of lower priority was bound: a new victim.

        So it is for claims without a quota, which watch for room alone.
        """
        lowest: dict[str | None, int] = {}
        for quota, priority in self._bound.read():
            lowest[quota] = min(lowest.get(quota, priority), priority)
        waiting = self.state.waiting
        quotas = (Watch(quota=quota) for quota in lowest if quota is not None)
        watches = [BORROWERS, *quotas] if lowest else []
        if None in lowest:
            watches.append(ROOM)
        for lane in (lane for watch in watches for lane in waiting.parked(watch)):
            head = lane.head
            if head is not None and head.priority > lowest.get(head.quota, head.priority):
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
