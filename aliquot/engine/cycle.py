"""The cycle: events in, decisions out.

    engine = Engine("capacity")
    for event in events:
        engine.apply(event)
    decisions = engine.cycle(now)

A cycle wakes the claims that something has changed for, and tries them in order of importance:
first the gates (may it start, as far as the quotas go), then placement (which node has room). What
starts is booked at once; what is refused is parked, with its reason, until that reason may have
gone, and blocks nobody behind it.

Pure and deterministic: the same events give the same decisions. Time is only what `now` says.
"""

from collections.abc import Iterator
from dataclasses import replace

from aliquot.engine.claim import Claim
from aliquot.engine.config import Knobs
from aliquot.engine.decisions import Bind, Decision, Evict, Hold
from aliquot.engine.events import Event
from aliquot.engine.ledger import Entry, Stage
from aliquot.engine.order import importance
from aliquot.engine.placement import Ask
from aliquot.engine.policies import POLICIES
from aliquot.engine.policies.limits import max_gate
from aliquot.engine.reasons import ROOM, Reason, Refusal, Watch
from aliquot.engine.state import State
from aliquot.engine.waiting import Lane


class Engine:
    """Quotas, placement and waiting claims of one cluster, under one policy."""

    def __init__(self, policy: str = "capacity", knobs: Knobs | None = None) -> None:
        knobs = knobs or Knobs()
        self.policy = policy
        self.state = State(knobs)
        self._gates = (max_gate, POLICIES[policy](knobs).gate)
        self._hold_for = knobs.eviction.hold_for
        self._held_until: dict[str, int] = {}

    def apply(self, event: Event) -> None:
        """Take note of what has happened; decides nothing."""
        self.state.apply(event)

    def cycle(self, now: int = 0) -> list[Decision]:
        """Decide everything that can be decided now (in nanoseconds)."""
        decisions: list[Decision] = list(self._lose())
        self._expire_holds(now)
        self._wake()
        while (due := self.state.waiting.next()) is not None:
            self._try(*due, decisions)
            self._wake()
        return decisions

    def next_deadline(self) -> int | None:
        """When a cycle is due even if nothing happens before: a hold runs out."""
        return min(self._held_until.values(), default=None)

    def why(self, uid: str) -> Refusal | None:
        """Why this waiting pod cannot start now, with the numbers of now; None if it can."""
        claim, ledger = self.state.waiting.claim(uid), self.state.ledger
        with ledger.lifted(self._not_counted_against(claim)):
            before = {pod.uid: ledger.entries.get(pod.uid) for pod in claim.pods}
            refusal = self._judge(claim)
            ledger.restore(before)
        return refusal

    def _try(self, lane: Lane, claim: Claim, decisions: list[Decision]) -> None:
        """Try the head of a lane; if it may not start, neither may those behind it."""
        state = self.state
        refusal = self._book(claim)
        if refusal is None:
            state.waiting.start(lane, claim)
            for pod in claim.pods:
                node = state.ledger.entries[pod.uid].booking.node
                assert node is not None
                decisions.append(Bind(pod, node))
        else:
            state.waiting.park(lane, refusal)
            for waiting in lane.tell(refusal):
                decisions.extend(Hold(pod, refusal) for pod in waiting.pods)

    def _book(self, claim: Claim) -> Refusal | None:
        """Reserve right and room for the whole claim, or nothing and say why not."""
        if not self.state.ledger.holding:
            return self._judge(claim)
        exempt = self._not_counted_against(claim)
        with self.state.ledger.lifted(exempt):
            refusal = self._judge(claim)
        if refusal is None:
            self._displace(claim, exempt)
        return refusal

    def _judge(self, claim: Claim) -> Refusal | None:
        first = claim.pods[0]
        if first.gated:
            return Refusal(Reason.SCHEDULING_GATED, "the pod has scheduling gates to be removed")
        if first.terminating:
            return Refusal(Reason.TERMINATING, "the pod is being deleted")
        if any(ask.shape.charges for ask in claim.asks):
            return self._judge_by_class(claim)
        return self._gate(claim, None) or self._place(claim, None)

    def _judge_by_class(self, claim: Claim) -> Refusal | None:
        """Where the charge depends on the node's class: only classes that the gates pass."""
        classes = self.state.placement.classes(claim.asks[0])
        words = {node_class: self._gate(claim, node_class) for node_class in classes}
        refusals = [refusal for refusal in words.values() if refusal is not None]
        allowed = [node_class for node_class in classes if words[node_class] is None]
        refusal = refusals[0] if refusals and not allowed else self._place(claim, allowed)
        if refusal is None or not refusals:
            return refusal
        watch = {watch: None for each in (refusal, *refusals) for watch in each.watch}
        return replace(refusal, watch=tuple(watch))

    def _gate(self, claim: Claim, node_class: str | None) -> Refusal | None:
        for gate in self._gates:
            refusal = gate(self.state, claim, node_class)
            if refusal is not None:
                return refusal
        return None

    def _place(self, claim: Claim, classes: list[str] | None) -> Refusal | None:
        """Reserve a node for each pod, or for none."""
        state = self.state
        before: dict[str, Entry | None] = {}
        for pod, ask in zip(claim.pods, claim.asks, strict=True):
            node = state.placement.find(ask, classes)
            if isinstance(node, Refusal):
                state.ledger.restore(before)
                return node
            before[pod.uid] = state.ledger.entries.get(pod.uid)
            state.ledger.reserve(pod.uid, state.booking(ask, claim.quota, node))
        return None

    def _not_counted_against(self, claim: Claim) -> list[str]:
        """Held bookings that do not stand in its way: its own, and in its quota lesser ones."""
        state, own = self.state, {pod.uid for pod in claim.pods}
        return [
            uid
            for uid in state.ledger.holding
            if uid in own
            or (
                state.ledger.entries[uid].booking.quota == claim.quota
                and state.waiting.claim(uid).key > claim.key
            )
        ]

    def _displace(self, claim: Claim, held: list[str]) -> None:
        """Lesser claims lose what was held for them on the nodes where this one starts."""
        entries = self.state.ledger.entries
        nodes = {entries[pod.uid].node for pod in claim.pods}
        for uid in held:
            if entries[uid].stage is Stage.HELD and entries[uid].node in nodes:
                self.state.give_up_hold(uid)

    def _expire_holds(self, now: int) -> None:
        """Nothing is held for longer than `holdFor`."""
        holding = self.state.ledger.holding
        self._held_until = {uid: self._held_until.get(uid, now + self._hold_for) for uid in holding}
        for uid, deadline in list(self._held_until.items()):
            if deadline <= now:
                self.state.give_up_hold(uid)
                del self._held_until[uid]

    def _lose(self) -> Iterator[Evict]:
        """Pods whose node is gone are gone too."""
        for uid in sorted(self.state.lost, key=lambda uid: importance(self.state.pods[uid])):
            node = self.state.ledger.entries[uid].booking.node
            yield Evict(self.state.pods[uid], None, Reason.NODE_LOST, f"node {node} is gone")
        self.state.lost.clear()

    def _wake(self) -> None:
        """Have the claims tried again for which something has been given back."""
        ledger, waiting = self.state.ledger, self.state.waiting
        if not ledger.freed_nodes and not ledger.freed_quotas:
            return
        nodes, quotas = ledger.freed_nodes, ledger.freed_quotas
        ledger.freed_nodes, ledger.freed_quotas = set(), set()
        for slot in quotas:
            waiting.wake(waiting.parked(Watch(quota=self.state.tree.slots.names[slot])))
        if ledger.holding:  # what is held may not count against its claimant: ask everybody
            waiting.wake(waiting.parked(ROOM))
        has_room: dict[Ask, bool] = {}
        for lane in waiting.parked(ROOM):
            asks = lane.head.asks if lane.head is not None else ()
            for ask in asks:
                if ask not in has_room:
                    has_room[ask] = self.state.placement.has_room(ask, nodes)
            if any(has_room[ask] for ask in asks):
                waiting.wake([lane])
