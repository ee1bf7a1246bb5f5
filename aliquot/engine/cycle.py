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

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from aliquot.engine.claim import Claim
from aliquot.engine.config import Knobs
from aliquot.engine.decisions import Bind, Decision, Evict, Hold, Nominate
from aliquot.engine.events import Event
from aliquot.engine.holds import Holds
from aliquot.engine.lane import Lane
from aliquot.engine.ledger import Entry
from aliquot.engine.order import importance
from aliquot.engine.placement import Ask
from aliquot.engine.policies import POLICIES, Policy, lower
from aliquot.engine.policies.limits import max_gate
from aliquot.engine.reasons import BORROWERS, ROOM, Reason, Refusal, Watch
from aliquot.engine.reclaim import Plan, search
from aliquot.engine.state import State
from aliquot.engine.summary import QuotaSummary, summarise
from aliquot.engine.tree import OUTSIDE, ROOT

Gate = Callable[[State, Claim, str | None], Refusal | None]
"""A check that a claim passes or not, on nodes of a class."""

_OTHERS_COULD_HELP = (
    Reason.QUOTA_MAX_EXCEEDED,
    Reason.BORROWING_EXHAUSTED,
    Reason.RUNTIME_EXCEEDED,
    Reason.ANCESTOR_EXCEEDED,
    Reason.NO_NODE_FITS,
)
_MOST_HOPEFUL = 200
"""How many claims are tried again in one cycle because something has changed somewhere.

Each costs a search for victims; those who were longest without one come first.
"""
_IN_A_CIRCLE = "; those who could make way did so before, and to ask them again goes in a circle"


class Engine:
    """Quotas, placement and waiting claims of one cluster, under one policy."""

    def __init__(self, policy: str = "capacity", knobs: Knobs | None = None) -> None:
        knobs = knobs or Knobs()
        self.policy = policy
        self._policy = POLICIES[policy](knobs)
        self.state = State(knobs, self._policy.order)
        if type(self._policy).turn is not Policy.turn:
            self.state.waiting.take_turns(partial(self._policy.turn, self.state))
        self._gates = (max_gate, self._policy.gate)
        self._holds = Holds(self.state, self._policy, knobs.eviction.hold_for)
        self._now = 0
        self._hopeful = 0
        """How many claims that found nobody to take back from are still to be tried again."""
        self._ripe: int | None = None
        """When the next pod will have run for `minRuntime`, if a claim waits for that."""

    def apply(self, event: Event) -> None:
        """Take note of what has happened; decides nothing."""
        self.state.apply(event)

    def cycle(self, now: int = 0) -> list[Decision]:
        """Decide everything that can be decided now (in nanoseconds)."""
        self._now = now
        decisions: list[Decision] = list(self._lose())
        self._holds.expire(now)
        for name in self._policy.begin(self.state, now):
            self.state.waiting.wake(self.state.waiting.parked(Watch(quota=name)))
        self.state.waiting.line_up()
        self._wake_reclaimers()
        decisions.extend(self._lower())
        decisions.extend(self._let_go(self._policy.recycle(self.state, now)))
        self._wake()
        while (due := self.state.waiting.next()) is not None:
            self._try(*due, decisions)
            self._wake()
        if all(isinstance(decision, Hold) for decision in decisions):
            decisions.extend(self._use_what_is_idle())
        return decisions

    def _use_what_is_idle(self) -> Iterator[Bind]:
        """Nothing has started: let claims go beyond their share, where the policy lets them."""
        waiting, gates = self.state.waiting, (max_gate, self._policy.beyond)
        line = waiting.refused((Reason.RUNTIME_EXCEEDED, Reason.ANCESTOR_EXCEEDED))
        while (first := line.first()) is not None:
            lane, claim = first
            if self._judge(claim, gates) is not None:
                line.drop()
                continue
            waiting.remove(claim.uid)
            self._policy.lent(claim)
            yield from self._binds(claim)
            head = lane.head
            if head is None:
                line.drop()
            else:
                line.replace(lane, head)

    def next_deadline(self) -> int | None:
        """When a cycle is due even if nothing happens before: a hold ends, a pod may be asked."""
        now = self._now if self._hopeful else None
        moments = (now, self._holds.deadline(), self._ripe, self._policy.deadline(self.state))
        return min((moment for moment in moments if moment is not None), default=None)

    def summarise(self) -> list[QuotaSummary]:
        """How every quota stands, by name."""
        return self._policy.complete(self.state, summarise(self.state))

    def why(self, uid: str) -> Refusal | None:
        """Why this waiting pod cannot start now, with the numbers of now; None if it can."""
        claim, ledger = self.state.waiting.claim(uid), self.state.ledger
        held = [uid for uid in claim.uids() if uid in ledger.holding]
        only = self._holds.node_class(claim)
        lesser = self._holds.lesser(claim)
        with ledger.lifted([*held, *(u for u in lesser if u not in held)]):
            before = {pod.uid: ledger.entries.get(pod.uid) for pod in claim.pods}
            refusal = self._judge(claim, only=only)
            verdict = refusal and self._reclaim(claim, refusal)
            ledger.restore(before)
        return verdict if isinstance(verdict, Refusal) else refusal

    def _try(self, lane: Lane, claim: Claim, decisions: list[Decision]) -> None:
        """Try the head of a lane; if it may not start, neither may those behind it."""
        verdict, lesser = self._book(claim)
        if verdict is None:
            self._started(lane, claim, decisions)
        elif isinstance(verdict, Plan):
            self._make_way(claim, verdict, decisions)
        else:
            self.state.waiting.park(lane, verdict)
            for waiting in lane.tell(verdict):
                decisions.extend(Hold(pod, verdict) for pod in waiting.pods)
            return
        self._holds.displace(claim, lesser)

    def _started(self, lane: Lane, claim: Claim, decisions: list[Decision]) -> None:
        self.state.waiting.start(lane, claim)
        decisions.extend(self._binds(claim))

    def _binds(self, claim: Claim) -> Iterator[Bind]:
        for pod in claim.pods:
            node = self.state.ledger.entries[pod.uid].booking.node
            assert node is not None
            yield Bind(pod, node)

    def _make_way(self, claim: Claim, plan: Plan, decisions: list[Decision]) -> None:
        """Evict the victims, and hold room and right for the claim until they are gone."""
        state = self.state
        victims = tuple(victim.pod for victim in plan.victims)
        state.circles.note(state.circles.move(state.waiting.mark, claim.pods, victims))
        self._holds.begin(claim, (pod.uid for pod in victims), self._now)
        for victim in plan.victims:
            state.budgets.spend(victim.pod)
            state.let_go(victim.pod.uid)
            decisions.append(Evict(victim.pod, claim.pods[0], victim.reason, victim.message))
        for pod, ask, node in zip(claim.pods, claim.asks, plan.nodes, strict=True):
            state.ledger.hold(pod.uid, state.booking(ask, claim.quota, node))
            decisions.append(Nominate(pod, node))
        state.waiting.add(Claim(claim.pods, claim.asks, claim.quota, held=True))

    def _book(self, claim: Claim) -> tuple[Refusal | Plan | None, list[str]]:
        """Reserve right and room for the whole claim; or say who must go first, or why not.

        What is held for the claim itself does not stand in its way; nor, if that is not enough,
        what is held for lesser claims of its quota: those who may have to stand back are named.
        """
        ledger = self.state.ledger
        if not ledger.holding:
            refusal = self._judge(claim)
            return refusal and self._reclaim(claim, refusal), []
        only = self._holds.node_class(claim)
        with ledger.lifted(uid for uid in claim.uids() if uid in ledger.holding):
            refusal = self._judge(claim, only=only)
            if refusal is None:
                return None, []
            lesser = self._holds.lesser(claim)
            with ledger.lifted(lesser):
                refusal = self._judge(claim, only=only) if lesser else refusal
                verdict = refusal and self._reclaim(claim, refusal)
        return verdict, lesser

    def _reclaim(self, claim: Claim, refusal: Refusal) -> Refusal | Plan:
        """A refused claim may have others make way for it, or wait for those who are leaving."""
        if refusal.reason not in _OTHERS_COULD_HELP:
            return refusal
        plan = self._search(claim)
        if plan is None:
            self._note_when_ripe()
            if not self._may_hope(claim, refusal):
                return refusal
            message = refusal.message + self._policy.hint(self.state, claim, refusal)
            return replace(refusal, message=message, watch=(*refusal.watch, BORROWERS))
        if plan.victims and self._goes_round(claim, plan):
            message = f"{refusal.message}{_IN_A_CIRCLE}"
            return replace(refusal, message=message, watch=(*refusal.watch, BORROWERS))
        if plan.victims or claim.uid not in self._holds:
            return plan
        words = f"holds {', '.join(plan.nodes)} until those who make way are gone"
        everything = (ROOM, Watch(quota=ROOT), Watch(quota=OUTSIDE), Watch(quota=claim.quota))
        return Refusal(Reason.WAITING_FOR_VICTIMS, words, claim.quota, watch=everything)

    def _may_hope(self, claim: Claim, refusal: Refusal) -> bool:
        """Could others make way for it some time, if something else changes?"""
        state = self.state
        if claim.quota is None or not claim.pods[0].preempts:
            return False
        shared = state.tree.quotas[claim.quota].is_parent or refusal.quota != claim.quota
        if refusal.reason is not Reason.QUOTA_MAX_EXCEEDED or shared:
            return True  # others than its own quota's pods could give
        own = state.running.quota == state.tree.slots[claim.quota]
        return bool((own & (state.running.priority < claim.priority)).any())

    def _goes_round(self, claim: Claim, plan: Plan) -> bool:
        """Has the same been done before, with nothing changed from outside since?"""
        circles, victims = self.state.circles, tuple(victim.pod for victim in plan.victims)
        move = circles.move(self.state.waiting.mark, claim.pods, victims)
        return circles.was_made(move, self._policy.is_owed(self.state, claim))

    def _search(self, claim: Claim) -> Plan | None:
        """Who must go so that the claim can start; class by class where charges depend on it."""
        state = self.state
        classes: list[str | None] = [None]
        if any(ask.by_class for ask in claim.asks):
            classes = list(state.placement.classes(claim.asks[0]))
        plans = []
        for node_class in classes:
            rights = self._policy.rights(state, claim, node_class)
            offers = self._policy.offers(state, claim, node_class, rights, self._now)
            only = None if node_class is None else [node_class]
            plan = search(state, claim, rights, offers if claim.pods[0].preempts else (), only)
            if plan is not None:
                plans.append(plan)
        return min(plans, key=lambda plan: plan.key, default=None)

    def _judge(
        self, claim: Claim, gates: tuple[Gate, ...] | None = None, only: str | None = None
    ) -> Refusal | None:
        """Reserve right and room for the claim, or say why not; nobody goes for it.

        Only on nodes of one class, if that is given.
        """
        gates = gates or self._gates
        first = claim.pods[0]
        if first.gated:
            return Refusal(Reason.SCHEDULING_GATED, "the pod has scheduling gates to be removed")
        if first.terminating:
            return Refusal(Reason.TERMINATING, "the pod is being deleted")
        if any(ask.by_class for ask in claim.asks):
            return self._judge_by_class(claim, gates, only)
        return self._gate(claim, None, gates) or self._place(claim, None)

    def _judge_by_class(
        self, claim: Claim, gates: tuple[Gate, ...], only: str | None
    ) -> Refusal | None:
        """Where the charge depends on the node's class: only classes that the gates pass."""
        classes = self.state.placement.classes(claim.asks[0]) if only is None else [only]
        words = {node_class: self._gate(claim, node_class, gates) for node_class in classes}
        refusals = [refusal for refusal in words.values() if refusal is not None]
        allowed = [node_class for node_class in classes if words[node_class] is None]
        refusal = refusals[0] if refusals and not allowed else self._place(claim, allowed)
        if refusal is None or not refusals:
            return refusal
        watch = {watch: None for each in (refusal, *refusals) for watch in each.watch}
        message = refusal.message
        if allowed:
            message += f"; of nodes of another class it is too much: {refusals[0].message}"
        return replace(refusal, message=message, watch=tuple(watch))

    def _gate(
        self, claim: Claim, node_class: str | None, gates: tuple[Gate, ...]
    ) -> Refusal | None:
        for gate in gates:
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

    def _note_when_ripe(self) -> None:
        """A claim that found nobody may find somebody once more pods have run long enough."""
        spared = self.state.knobs.eviction.min_runtime
        started = self.state.running.started
        young = started[(self.state.running.node >= 0) & (started + spared > self._now)]
        if spared and len(young):
            ripe = int(young.min()) + spared
            self._ripe = ripe if self._ripe is None else min(self._ripe, ripe)

    def _wake_reclaimers(self) -> None:
        """Try claims again that found nobody to take back from, if that may have changed."""
        waiting, ripe = self.state.waiting, self._ripe is not None and self._now >= self._ripe
        if self.state.stirred or ripe:
            self._hopeful = len(waiting.parked(BORROWERS))
            if ripe:
                waiting.wake(waiting.parked(ROOM))
                self._ripe = None
            self.state.stirred = False
        waiting.wake(waiting.parked(BORROWERS)[: min(self._hopeful, _MOST_HOPEFUL)])
        self._hopeful = max(self._hopeful - _MOST_HOPEFUL, 0)

    def _lower(self) -> Iterator[Evict]:
        """With `onQuotaLowered: evict`, a quota above a lowered bound gives back at once.

        What is spared for now is asked for later.
        """
        state = self.state
        lowered, state.lowered = state.lowered, {}
        if state.knobs.eviction.on_quota_lowered != "evict":
            return
        for name in sorted(lowered):
            if name not in state.tree.quotas:
                continue
            excess = lower.above_max(state, name) | self._policy.excess(state, name)
            yield from self._let_go(lower.evictions(state, name, excess, self._now))
            if lower.above_max(state, name) or self._policy.excess(state, name):
                state.lowered[name] = None
                self._note_when_ripe()

    def _let_go(self, evictions: Iterable[Evict]) -> Iterator[Evict]:
        """Carry out what nobody in particular has asked for."""
        for eviction in evictions:
            self.state.budgets.spend(eviction.pod)
            self.state.let_go(eviction.pod.uid)
            yield eviction

    def _lose(self) -> Iterator[Evict]:
        """Pods whose node is gone are gone too."""
        for uid in sorted(self.state.lost, key=lambda uid: importance(self.state.pods[uid])):
            node = self.state.ledger.entries[uid].booking.node
            pod = self.state.pods[uid]
            self.state.let_go(uid)
            yield Evict(pod, None, Reason.NODE_LOST, f"node {node} is gone")
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
            head = lane.head
            if head is None:
                continue
            for ask in head.asks:
                if ask not in has_room:
                    has_room[ask] = self.state.placement.has_room(ask, nodes)
            if any(has_room[ask] for ask in head.asks) or self._could_preempt(head, nodes):
                waiting.wake([lane])

    def _could_preempt(self, claim: Claim, nodes: set[int]) -> bool:
        """May what was given back be enough now for a claim without a quota, if others go, too?

        Claims with a quota wait for others to give in any case; see `_wake_reclaimers`.
        """
        state = self.state
        return (
            claim.quota is None
            and claim.pods[0].preempts
            and any(
                state.pods[uid].priority < claim.priority
                and state.ledger.entries[uid].booking.quota is None
                for node in nodes
                for uid in state.ledger.by_node.get(node, ())
            )
        )
