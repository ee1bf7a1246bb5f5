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

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from aliquot.engine.gang_claims import muster_all
from aliquot.engine.holds.assumed import AssumedPods
from aliquot.engine.holds.nominations import Nominations
from aliquot.engine.holds.reservation import Reservations
from aliquot.engine.model.decisions import Bind, Decision, Evict, Nominate, Wait
from aliquot.engine.model.events import Event
from aliquot.engine.model.importance import importance
from aliquot.engine.model.knobs import Knobs
from aliquot.engine.model.pod import Pod, Shape
from aliquot.engine.model.reasons import Reason, Refusal, Watch
from aliquot.engine.model.summaries import (
    Figures,
    GangSummary,
    GpuQuotaSummary,
    QueueSummary,
    QuotaSummary,
)
from aliquot.engine.policies import POLICIES, Policy
from aliquot.engine.policies.gates import closed_gate, gpu_gate, max_gate
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.lane import Lane
from aliquot.engine.reclaim import lowered_bounds
from aliquot.engine.reclaim.search import Plan
from aliquot.engine.report import audit, resize, tree_figures
from aliquot.engine.report import gpu_quotas as gpu_report
from aliquot.engine.report.gangs import standing
from aliquot.engine.report.quotas import over_quota_pods, summarise
from aliquot.engine.state import State
from aliquot.engine.trial import BEYOND, Trial
from aliquot.engine.wakeups import Wakeups


class Engine:
    """Quotas, placement and waiting claims of one cluster, under one policy."""

    def __init__(self, policy: str = "capacity", knobs: Knobs | None = None) -> None:
        knobs = knobs or Knobs()
        self.policy = policy
        self._policy = POLICIES[policy](knobs)
        self.state = State(knobs, self._policy.order)
        self.state.untouchable = self._policy.untouchable
        if type(self._policy).turn is not Policy.turn:
            path, turn = self._policy.path, self._policy.turn
            self.state.waiting.take_turns(partial(path, self.state), partial(turn, self.state))
        self._nominations = Nominations(self.state, self._policy, knobs.eviction.hold_for)
        hold_for = knobs.eviction.hold_for
        self._reservations = Reservations(self.state, self._policy, self._nominations, hold_for)
        self._trial = Trial(self.state, self._policy, self._nominations)
        self._wakeups = Wakeups(self.state)
        self._assumptions = AssumedPods(self.state)
        self._now = 0
        self._in_vain: tuple[int, ...] = ()
        """When nobody could use what was idle."""

    def apply(self, event: Event) -> None:
        """Take note of what has happened; decides nothing."""
        self.state.apply(event)

    def cycle(self, now: int = 0) -> list[Decision]:
        """Decide everything that can be decided now (in nanoseconds)."""
        self._now = self._trial.now = now
        self._assumptions.expire(now)
        muster_all(self.state)
        decisions: list[Decision] = list(self._lose())
        self._nominations.expire(now)
        for name in self._policy.begin(self.state, now):
            self.state.waiting.wake(self.state.waiting.parked(Watch(quota=name)))
        self.state.waiting.reorder()
        self._wakeups.by_what_was_stirred(now)
        decisions.extend(self._lower())
        decisions.extend(self._let_go(self._policy.recycle(self.state, now)))
        muster_all(self.state)
        self._wakeups.by_what_came_free()
        while (due := self.state.waiting.next()) is not None:
            self._try(*due, decisions)
            self._wakeups.by_what_came_free()
        if all(isinstance(decision, Wait) for decision in decisions):
            decisions.extend(self._try_what_is_idle())
        decisions.extend(self._reservations.reserve(now))
        return decisions

    def _try_what_is_idle(self) -> list[Bind]:
        """Unless that was in vain, and nothing has come free or been asked for since."""
        state = self.state
        moment = (
            state.ledger.releases,
            state.placement.version(),
            state.waiting.changes,
            state.tree.version,
            len(state.ledger.holding),
            state.gpu_quotas.version,
        )
        if moment == self._in_vain:
            return []
        patient: set[str] = set()
        started = list(self._use_what_is_idle(patient))
        if not started and patient:
            started = list(self._use_what_is_idle(None))
        if started:
            state.stirred = True  # what is idle now is less, for whoever counted on it
        else:
            self._in_vain = moment
        return started

    def _use_what_is_idle(self, patient: set[str] | None) -> Iterator[Bind]:
        """Nothing has started: let claims go beyond their share, where the policy lets them.

        Whoever would have to give it back at once is `patient`, where anybody may be.
        """
        waiting, gates = self.state.waiting, (closed_gate, gpu_gate, max_gate, self._policy.beyond)
        line = waiting.refused(BEYOND)
        while (first := line.first()) is not None:
            lane, claim = first
            waits = patient is not None and not self._policy.would_keep(self.state, claim)
            if patient is not None and waits:
                patient.add(claim.uid)
            if waits or self._trial.judge(claim, gates) is not None:
                line.drop()
                continue
            waiting.remove(claim.uid)
            self._reservations.started(claim)
            self._policy.started(self.state, claim)
            self._let_others_claim(claim)
            self._policy.lent(claim)
            yield from self._binds(claim)
            head = lane.head
            if head is None:
                line.drop()
            else:
                line.replace(lane, head)

    def next_deadline(self) -> int | None:
        """When a cycle is due even if nothing happens before: a hold ends, a pod may be asked."""
        moments = (
            self._wakeups.deadline(self._now),
            self._nominations.deadline(),
            self._policy.deadline(self.state),
            self._reservations.deadline(),
            self._assumptions.deadline(),
        )
        return min((moment for moment in moments if moment is not None), default=None)

    def summarise(self) -> list[QuotaSummary]:
        """How every quota stands, by name."""
        muster_all(self.state)
        return self._policy.complete(self.state, list(summarise(self.state)))

    def quota_of(self, pod: Pod) -> str | None:
        """The quota that a pod belongs to, if any."""
        return self.state.tree.quota_of(pod)

    def over_quota_pods(self) -> set[str]:
        """The uids of all bound pods that are over their quota's min."""
        return over_quota_pods(self.state)

    def child_requests(self, summaries: Mapping[str, QuotaSummary]) -> dict[str, Figures]:
        """What the pods of each quota ask for, and its children as far as their max lets them."""
        return tree_figures.child_requests(self.state, summaries)

    def not_preemptible(self) -> tuple[dict[str, Figures], dict[str, Figures]]:
        """What pods that are not to be evicted ask for, and hold, by quota."""
        return tree_figures.not_preemptible(self.state)

    def violations(self, uids: Iterable[str], bound: audit.Bound) -> Iterator[str]:
        """Where the books are not what the cluster says; see `report.audit`."""
        return audit.violations(self.state, uids, bound)

    def queues(self) -> list[QueueSummary]:
        """How every queue stands, and the namespaces in it, by name; none unless they share so."""
        muster_all(self.state)
        return self._policy.queues(self.state, summarise(self.state))

    def gpu_quotas(self) -> list[GpuQuotaSummary]:
        """How every quota on GPUs stands, by namespace."""
        return gpu_report.summarise(self.state)

    def may_resize(self, uid: str, shape: Shape) -> Refusal | None:
        """Why a running pod could not be changed to ask for this, where it is; None if it could."""
        return resize.check(self.state, uid, shape)

    def is_awaited(self, uid: str) -> bool:
        """Is room held that this pod is to leave?"""
        return self._nominations.is_awaited(uid)

    def gangs(self) -> list[GangSummary]:
        """How every gang stands, by name."""
        muster_all(self.state)
        gangs = sorted(self.state.gangs.known.values(), key=lambda gang: gang.name)
        return [standing(self._trial, gang) for gang in gangs]

    def why(self, uid: str) -> Refusal | None:
        """Why this waiting pod cannot start now, with the numbers of now; None if it can."""
        muster_all(self.state)
        return self._trial.why(self.state.waiting.claim(uid))

    def _try(self, lane: Lane, claim: Claim, decisions: list[Decision]) -> None:
        """Try the head of a lane; if it may not start, neither may those behind it."""
        held = self._nominations.nodes_of(claim)
        verdict, lesser = self._trial.book(claim)
        if verdict is None:
            self._started(lane, claim, decisions)
        elif isinstance(verdict, Plan):
            self._make_way(claim, verdict, decisions)
        else:
            self.state.waiting.park(lane, verdict)
            self._reservations.refused(claim, verdict, self._now)
            self._wakeups.note_when_ripe(self._now)
            for waiting in lane.unreported(verdict):
                decisions.extend(Wait(pod, verdict) for pod in waiting.members)
            return
        self._nominations.displace(claim, lesser, self._left(claim, held))

    def _left(self, claim: Claim, held: list[str]) -> list[str]:
        """The nodes on which room was held for a claim that has found its place elsewhere."""
        entries = self.state.ledger.entries
        for pod in claim.pods if held else ():
            node = entries[pod.uid].booking.node
            if node in held:
                held.remove(node)
        return held

    def _started(self, lane: Lane, claim: Claim, decisions: list[Decision]) -> None:
        self.state.waiting.start(lane, claim)
        self._reservations.started(claim)
        self._policy.started(self.state, claim)
        self._let_others_claim(claim)
        decisions.extend(self._binds(claim))

    def _let_others_claim(self, claim: Claim) -> None:
        """The core of a gang runs: those who waited with it ask for themselves."""
        if claim.others:
            waiting, changes = self.state.waiting, self.state.waiting.changes
            self.state.gangs.mark_dirty(claim.pods[0])
            muster_all(self.state)
            asks = (self.state.placement.ask(pod.shape) for pod in claim.others)
            if all(map(self.state.placement.could_hold, asks)):
                waiting.changes = changes  # nobody has come, or gone, or lost hope

    def _binds(self, claim: Claim) -> Iterator[Bind]:
        for pod in claim.pods:
            booking = self.state.ledger.entries[pod.uid].booking
            assert booking.node is not None
            self._assumptions.note(pod.uid, self._now)
            yield Bind(pod, booking.node, booking.gpu.devices if booking.gpu is not None else ())

    def _make_way(self, claim: Claim, plan: Plan, decisions: list[Decision]) -> None:
        """Evict the victims, and hold room and right for the claim until they are gone."""
        state = self.state
        victims = tuple(victim.pod for victim in plan.victims)
        state.repeat_guard.record(
            state.repeat_guard.move(state.waiting.fingerprint, claim.pods, victims)
        )
        self._policy.promised(state, claim)
        self._nominations.begin(claim, (pod.uid for pod in victims), self._now)
        for victim in plan.victims:
            state.budgets.spend(victim.pod)
            state.let_go(victim.pod.uid)
            decisions.append(Evict(victim.pod, claim.pods[0], victim.reason, victim.message))
        muster_all(state)
        for pod, node, devices in zip(claim.pods, plan.nodes, plan.devices, strict=True):
            state.ledger.hold(pod.uid, state.bookings.booking(pod, claim.quota, node, devices))
            decisions.append(Nominate(pod, node))
        state.waiting.add(state.claims.of(claim.pods, claim.others, surplus=claim.surplus))

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
            excess = lowered_bounds.above_max(state, name) | self._policy.excess(state, name)
            yield from self._let_go(lowered_bounds.evictions(state, name, excess, self._now))
            if lowered_bounds.above_max(state, name) or self._policy.excess(state, name):
                state.lowered[name] = None
                self._wakeups.note_when_ripe(self._now)

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
