"""The cycle: events in, decisions out.

    engine = Engine("capacity")
    for event in events:
        engine.apply(event)
    decisions = engine.cycle(now)

One cycle, in this order:

1. expire: binds that were never confirmed, nominations that have lasted too long; pods of lost
   nodes are evicted; the waiting pods of gangs that have changed are put together into claims;
2. wake: the parked claims whose reason to wait may be gone are due again;
3. evict without a claimant: quotas above lowered bounds, recycling (as the policy has it);
4. process: the due claims one by one, in the policy's order. A claim passes the gates (its quotas
   allow it) and placement (a node has room), and is bound; or it preempts, and room and right are
   nominated for it; or it is refused, and its lane is parked with the reason. A parked lane does
   not block the lanes behind it;
5. idle capacity: if no claim has started, claims may go beyond their share where the policy lets
   them;
6. reserve: room and right for claims that other claims keep passing.

Each decision is booked in the ledger at once, so the next one sees it. `trial` finds a claim's
verdict; this module carries it out. What can be asked of an engine is in `report.questions`. Pure
and deterministic: the same events give the same decisions, and time is only what `now` says.
"""

from collections.abc import Iterable, Iterator, Sequence

from aliquot.engine.eviction_brake import BRAKED, Braked, EvictionBrake
from aliquot.engine.gang_claims import GangClaims
from aliquot.engine.holds.assumed import AssumedPods
from aliquot.engine.holds.fresh_starts import FreshStarts
from aliquot.engine.holds.last_refusals import LastRefusals
from aliquot.engine.holds.nominations import Nominations
from aliquot.engine.holds.patience import Patience
from aliquot.engine.holds.reservation import Reservations
from aliquot.engine.model.checks import check, shown
from aliquot.engine.model.decisions import Bind, Decision, Evict, Nominate, Wait
from aliquot.engine.model.events import Event, check_event
from aliquot.engine.model.importance import importance
from aliquot.engine.model.knobs import Knobs
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.reasons import BORROWERS, Reason, Refusal, Watch
from aliquot.engine.policies import POLICIES
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.claim_queue import Position
from aliquot.engine.queue.lane import Lane
from aliquot.engine.reclaim.lowered_bounds import LoweredBounds
from aliquot.engine.reclaim.plan import Plan
from aliquot.engine.report import refusals
from aliquot.engine.report.gang_admission import GangAdmission
from aliquot.engine.report.questions import Questions
from aliquot.engine.state import State
from aliquot.engine.trial import OVER_SHARE, PutOff, Trial
from aliquot.engine.updates import apply_event, apply_pods, check_against_books
from aliquot.engine.wakeups import Wakeups
from aliquot.errors import ArgumentError

_MOST_UNFINISHED = 100
"""How many bounded cycles in a row may leave claims untried before reservations are seen to."""
_MOST_KEPT_BACK = 1_000
"""And for how many the Binds of borrowers are kept back, which the claims left may take back: under
a load that never ends, they start nevertheless, after some 20 s."""


class Engine(Questions):
    """Quotas, placement and waiting claims of one cluster, under one policy."""

    def __init__(self, policy: str = "capacity", knobs: Knobs | None = None) -> None:
        knobs = Knobs() if knobs is None else knobs
        check(knobs, Knobs, "knobs")
        registered = POLICIES.get(policy) if isinstance(policy, str) else None
        if registered is None:
            raise ArgumentError(f"policy {shown(policy)} is none of {', '.join(POLICIES)}")
        self.policy = policy
        self._state = State(knobs, registered.order(knobs), registered.spares_system)
        self._policy = registered.build(self._state)
        if self._policy.turns is not None:
            self._state.waiting.take_turns(self._policy.turns.path, self._policy.turns.turn)
        self._nominations = Nominations(self._state, self._policy, knobs.eviction.hold_for)
        self._reservations = Reservations(self._state, self._policy, knobs.placement)
        self._brake = EvictionBrake(self._state)
        holds = self._nominations, self._reservations
        self._patience = Patience(self._state, self._nominations)
        self._fresh_starts = FreshStarts(self._state, self._policy)
        kept = self._fresh_starts, self._reservations, self._brake
        self._last_refusals = LastRefusals(self._state, self._policy, *kept)
        rest = self._patience, self._last_refusals
        self._trial = Trial(self._state, self._policy, *holds, self._brake, *rest)
        self._gang_claims = GangClaims(self._state)
        self._admission = GangAdmission(self._trial, knobs.eviction.hold_for)
        self._lowered = LoweredBounds(self._state, self._policy)
        self._lost = self._state.changes.lost.cursor(deciding=True)
        self._wakeups = Wakeups(self._state, self._nominations.waits_for_victims)
        self._assumptions = AssumedPods(self._state)
        self._now = 0
        self.unfinished = False
        """Has the last cycle, which was bounded, left claims untried?"""
        self._cycles_unfinished = 0
        self._started = 0
        """How many claims have started so far."""
        self._in_force: dict[str, Bind] = {}
        """The Binds of this cycle that were not withdrawn, by the uid of their pod."""
        self._idle_refused_at: tuple[int, ...] = ()
        """The versions of the books when last no claim could start on idle capacity."""

    def apply(self, event: Event) -> None:
        """Book what has happened in the cluster; decides nothing.

        An event that makes no sense is refused with an error of ours, and nothing is booked.
        """
        check_event(event)
        check_against_books(self._state, event)
        apply_event(self._state, event)
        self._brake.apply(event)

    def load(self, pods: Sequence[Pod]) -> None:
        """Book many pods at once, as a `PodSet` of each would; none if one makes no sense."""
        apply_pods(self._state, pods)

    def follow(self, now: int) -> None:
        """Keep up with a cluster for which another engine decides; this one is only asked.

        Its cycles would read the changes of the books; without them, these would add up for ever,
        and no node would be lost with time.
        """
        self._now = now
        self._state.lose_nodes(now)
        self._state.strand(now)
        self._state.changes.skip_deciding()
        self._gang_claims.refresh()
        self._state.gang_requests.refresh()
        self._admission.note_changes()
        self._policy.report.refresh()
        if self._policy.turns is not None:
            self._policy.turns.begin()
        self._state.trim_changes()

    def cycle(self, now: int = 0, bounded: bool = False) -> list[Decision]:
        """Decide everything that can be decided now (in nanoseconds).

        `bounded`: only as much as takes some 20 ms; while `unfinished`, a next cycle goes on.
        """
        if not isinstance(now, int):
            raise ArgumentError(f"now: {shown(now)} is not a whole number of nanoseconds")
        self._now = self._trial.now = now
        self._trial.effort.begin(bounded, len(self._state.bound_pods))
        self._state.trim_changes()
        self._assumptions.expire(now)
        self._state.lose_nodes(now)
        self._state.strand(now)
        going_on = self._fresh_starts.begin()
        self._gang_claims.refresh()
        self._in_force.clear()
        decisions: list[Decision] = list(self._evict_pods_of_lost_nodes())
        for claim in going_on:
            decisions.extend(map(self._bind, claim.pods))
        self._policy.gates.refresh()
        if self._patience.release(now, self._brake.is_paused(now)):
            self._policy.gates.refresh()
        self._nominations.expire(now)
        self._wake(now)
        self._brake.begin(now)
        if self._brake.is_open(now):
            decisions.extend(self._evict_above_lowered_bounds(now))
            decisions.extend(self._evict(self._policy.reclaim.recycle(now)))
        self._brake.wake(now)
        self._gang_claims.refresh()
        self._process_due(decisions)
        if self._all_tried():
            if all(isinstance(decision, Wait) for decision in decisions):
                decisions.extend(self._try_idle_capacity())
            decisions.extend(self._reservations.reserve(now))
            self._admission.update(now)
        return self._handed_out(decisions)

    def _handed_out(self, decisions: list[Decision]) -> list[Decision]:
        """The decisions without the Binds that claims which are yet to be tried may take back."""
        if self._cycles_unfinished % _MOST_KEPT_BACK == 0:
            self._fresh_starts.hand_out()
            return decisions
        for uid in self._fresh_starts.keep():
            self._in_force.pop(uid, None)
        return [each for each in decisions if self._is_in_force(each)]

    def _all_tried(self) -> bool:
        """Were all due claims tried?

        What follows waits for that, but not for ever: every so often it is done nevertheless.
        """
        self._trial.effort.unbind()
        self.unfinished = self._state.waiting.unfinished
        self._cycles_unfinished = self._cycles_unfinished + 1 if self.unfinished else 0
        return self._cycles_unfinished % _MOST_UNFINISHED == 0

    def _wake(self, now: int) -> None:
        """Make claims due again whose share, or whose possible victims, may have changed."""
        policy, waiting = self._policy, self._state.waiting
        opened = policy.gates.begin()
        if policy.turns is not None:
            policy.turns.begin()
        policy.reclaim.begin(now)
        for name in opened:
            waiting.wake(waiting.parked(Watch(quota=name)))
        waiting.reorder()
        self._reservations.wake_overstayed(now)
        self._wakeups.wake_for_new_victims(now, self.unfinished)
        waiting.resume()

    def _process_due(self, decisions: list[Decision]) -> None:
        """Process the due claims in the policy's order, with those that freed capacity wakes."""
        effort, waiting = self._trial.effort, self._state.waiting
        self._fresh_starts.show_again()
        self._last_refusals.begin()
        self._wakeups.wake_by_freed()
        started = -1
        while True:
            self._trial.shared.clear()
            while effort.may_try and (due := waiting.next()) is not None:
                lane, claim = due
                if effort.may_search or self._may_pass(claim):
                    self._process(lane, claim, decisions)
                else:
                    waiting.put_off(lane)
                self._wakeups.wake_by_freed()
            if self._withdraw_later_starts() or self._search_among_starts():
                continue
            if started == self._started or not self._wakeups.wake_by_rules():
                break
            started = self._started
        self._fresh_starts.hide()
        decisions[:] = [each for each in decisions if self._is_in_force(each)]

    def _is_in_force(self, decision: Decision) -> bool:
        """Is it no Bind that was withdrawn?"""
        return not isinstance(decision, Bind) or self._in_force.get(decision.pod.uid) is decision

    def _search_among_starts(self) -> bool:
        """Try refused claims again that could evict starts of this cycle in the next; are there?

        What they would evict is withdrawn.
        """
        waiting = self._state.waiting
        lanes = self._fresh_starts.show_to(waiting.parked(BORROWERS))
        waiting.wake(lanes)
        return bool(lanes)

    def _withdraw_later_starts(self) -> bool:
        """Withdraw starts for claims that were refused before them, and would take them back.

        These claims are due again. Was there one?
        """
        effort, waiting, woken = self._trial.effort, self._state.waiting, list[Lane]()
        for lane in self._fresh_starts.refused_before_others():
            head = lane.head
            if head is not None and lane.refusal is not None and effort.may_try:
                effort.note_trial(holding=False)
                if self._withdraw_starts(head):
                    waiting.wake([lane])
                    woken.append(lane)
        return bool(woken)

    def _may_pass(self, claim: Claim) -> bool:
        """May the claim start before others whose victims are yet to be searched?

        Not if it would borrow: they could take that back at once.
        """
        outside = claim.quota is None and not claim.parts
        return outside or self._policy.gates.is_owed(claim)

    def _try_idle_capacity(self) -> list[Bind]:
        """Bind claims beyond their share; skipped if the books are as when none could start."""
        state = self._state
        versions = (
            state.ledger.releases,
            state.placement.version(),
            state.waiting.changes,
            state.tree.version,
            len(state.ledger.holding),
            state.gpu_quotas.version,
        )
        if versions == self._idle_refused_at:
            return []
        deferred: set[str] = set()
        started = list(self._bind_on_idle_capacity(deferred))
        if not started and deferred:
            started = list(self._bind_on_idle_capacity(None))
        if started:
            state.changes.victims.append(started[0].pod.uid)  # less is idle for others
        else:
            self._idle_refused_at = versions
        return started

    def _bind_on_idle_capacity(self, deferred: set[str] | None) -> Iterator[Bind]:
        """Bind the claims that the policy's idle gate lets use idle capacity.

        Where `deferred` is a set, claims that would be evicted again at once are noted in it and
        not tried, so that claims that could keep the capacity come first.
        """
        waiting = self._state.waiting
        queue = waiting.refused((*OVER_SHARE, *BRAKED, Reason.RESERVED))
        while (first := queue.first()) is not None:
            lane, claim = first
            defer = deferred is not None and not self._policy.gates.could_keep_idle(claim)
            if deferred is not None and defer:
                deferred.add(claim.uid)
            position = self._reservations.position(claim)
            if defer or not self._trial.starts_on_idle(claim):
                queue.drop()
                continue
            waiting.remove(claim.uid)
            self._note_started(claim, position)
            self._policy.reclaim.started_on_idle(claim)
            yield from map(self._bind, claim.pods)
            head = lane.head
            if head is None:
                queue.drop()
            else:
                queue.replace(lane, head)

    def next_deadline(self, at_rest: bool = False) -> int | None:
        """When a cycle is due even without events: a nomination ends, a pod becomes evictable.

        `at_rest`: no pod will end and no object change any more. Then no reservation is due, since
        none would ever let a claim start.

        At once, while claims are left that the last cycle did not get to; else after that cycle,
        which has seen all that was due by then: time never stands still.
        """
        if self.unfinished:
            return self._now
        moments = (
            self._wakeups.deadline(),
            self._nominations.deadline(self._now),
            self._policy.reclaim.deadline(),
            None if at_rest else self._reservations.deadline(self._now),
            self._assumptions.deadline(),
            self._state.nodes.next_loss(self._state.knobs.eviction.node_lost_after),
            self._state.stranded.deadline(),
            self._admission.deadline(),
            self._brake.deadline(self._now),
            self._patience.deadline(),
        )
        later = (moment for moment in moments if moment is not None and moment > self._now)
        return min(later, default=None)

    def _process(self, lane: Lane, claim: Claim, decisions: list[Decision]) -> None:
        """Try the head of a lane: start it, preempt for it, or park the whole lane.

        The claims behind it are of the same kind, so they would be refused for the same reason.
        """
        if self._last_refusals.park_again(lane, claim, self._trial.effort):
            return
        nominated_nodes = self._nominations.nodes_of(claim)
        position = self._reservations.position(claim)
        verdict, displaced = self._trial.try_claim(claim)
        if verdict is not None and self._withdraw_starts(claim):
            return  # it is tried again, after the claims that come before it and are woken by that
        if isinstance(verdict, PutOff):
            self._state.waiting.put_off(lane)
            return
        if verdict is None:
            self._state.waiting.start(lane, claim)
            self._note_started(claim, position, displaced)
            decisions.extend(map(self._bind, claim.pods))
        elif isinstance(verdict, Plan):
            if self._take_back_starts(claim, verdict):
                return
            self._preempt(claim, verdict, decisions)
        else:
            told = self._trial.describe(claim, verdict)
            self._state.waiting.park(lane, told)
            self._fresh_starts.note_refused(lane)
            self._last_refusals.note(lane, claim, told, self._now)
            if isinstance(verdict, Braked):
                self._brake.note_refused(claim, verdict)
                verdict = verdict.cause or verdict
            self._reservations.note_refused(claim, verdict, self._now)
            self._wakeups.note_min_runtime(self._now)
            decisions.extend(self._waits(lane, claim, told))
            return
        if displaced:
            vacated = self._nominations.vacated(claim, nominated_nodes)
            self._nominations.displace(claim, displaced, vacated)

    def _take_back_starts(self, claim: Claim, plan: Plan) -> bool:
        """Withdraw the victims whose Bind was not handed out yet; was there one?

        Then the claim is tried again: also where none was withdrawn, since others need them.
        """
        state, victims = self._state, tuple(victim.pod for victim in plan.victims)
        before = state.waiting.fingerprint
        withdrawn = self._fresh_starts.take_back(claim, (pod.uid for pod in victims))
        if withdrawn is None:
            return False
        if withdrawn:
            guard = state.repeat_guard
            move = guard.move(before, claim.pods, victims)
            guard.record(move, claim.uid if claim.has_rules else None)
        self._withdraw_binds(withdrawn)
        return True

    def _withdraw_starts(self, claim: Claim) -> bool:
        """Withdraw Binds of this cycle that the claim would take back; was there one?"""
        withdrawn = self._fresh_starts.withdraw_for(claim, self._trial.fit.assume)
        return self._withdraw_binds(withdrawn)

    def _withdraw_binds(self, withdrawn: set[str]) -> bool:
        if not withdrawn:
            return False
        self._trial.shared.clear()
        self._gang_claims.refresh()
        self._state.waiting.reorder()
        for uid in withdrawn:
            self._in_force.pop(uid, None)
        return True

    def _waits(self, lane: Lane, claim: Claim, refusal: Refusal) -> Iterator[Wait]:
        """The Waits of a refused lane, told in full; the same refusal is not looked into again."""
        unreported = lane.unreported(refusal)
        if not unreported:
            return
        if lane.told is None or lane.told[0] != refusal:
            lane.told = refusal, refusals.in_full(self._trial, claim, refusal)
        for waiting in unreported:
            for pod in waiting.members:
                yield Wait(pod, lane.told[1])

    def _note_started(
        self, claim: Claim, position: Position | None, displaced: list[str] | None = None
    ) -> None:
        """A claim has started: it may have passed others, its groups have had their turn."""
        self._started += 1
        self._reservations.note_started(claim, position, displaced or [], self._now)
        self._fresh_starts.note(claim)
        if self._policy.turns is not None:
            self._policy.turns.started(claim)
        self._gang_claims.claim_rest(claim)

    def _bind(self, pod: Pod) -> Bind:
        """The Bind of a pod, on the node and devices that were assumed for it."""
        booking = self._state.ledger.entries[pod.uid].booking
        assert booking.node is not None
        self._assumptions.note(pod.uid, self._now)
        devices = booking.gpu.devices if booking.gpu is not None else ()
        bind = self._in_force[pod.uid] = Bind(pod, booking.node, devices, booking.volumes)
        return bind

    def _preempt(self, claim: Claim, plan: Plan, decisions: list[Decision]) -> None:
        """Evict the victims; nominate their room and right for the claim until they are gone.

        With `eviction.patience`, they are left alone until that is over.
        """
        state = self._state
        victims = tuple(victim.pod for victim in plan.victims)
        due = self._patience.due(claim, self._now) if victims else self._now
        if due <= self._now:
            move = state.repeat_guard.move(state.waiting.fingerprint, claim.pods, victims)
            state.repeat_guard.record(move, claim.uid if claim.has_rules else None)
        for part in claim.parts or (claim,):
            self._policy.gates.nominated(part)
        self._reservations.end(claim)
        lacks_right = self._trial.fit.check_gates(claim) is not None
        if due <= self._now:
            self._brake.spend(len(victims), self._now, claim)
        for pod in victims:
            state.budgets.spend(pod)
            state.evict(pod.uid)
        self._gang_claims.refresh()
        for pod, node, devices in zip(claim.pods, plan.nodes, plan.devices, strict=True):
            quota = state.tree.quota_of(pod)
            state.ledger.hold(pod.uid, state.bookings.booking(pod, quota, node, devices))
        uids = (pod.uid for pod in victims)
        self._nominations.nominate(claim, uids, due, lacks_right, plan.waived)
        evicted = tuple(Evict(v.pod, claim.pods[0], v.reason, v.message) for v in plan.victims)
        if due > self._now:
            self._patience.defer(claim, evicted, due)
        else:
            decisions.append(Nominate(claim.pods, plan.nodes, evicted))
        state.waiting.add(state.claims.of(claim.pods, claim.others, surplus=claim.surplus))

    def _evict(self, evictions: Iterable[Evict]) -> Iterator[Evict]:
        """Book evictions that are not for one claim: lowered bounds, recycling."""
        for eviction in self._brake.take(evictions, self._now):
            self._state.budgets.spend(eviction.pod)
            self._state.evict(eviction.pod.uid)
            yield eviction

    def _evict_above_lowered_bounds(self, now: int) -> Iterator[Evict]:
        """Evict pods of quotas above a lowered bound; what is too young is tried again later."""
        for evictions in self._lowered.evictions(now):
            yield from self._evict(evictions)
        if self._lowered.still_above:
            self._wakeups.note_min_runtime(now)

    def _evict_pods_of_lost_nodes(self) -> Iterator[Evict]:
        """Evict the pods whose node no longer exists, the most important first."""
        state = self._state
        entries, nodes = state.ledger.entries, state.nodes.known
        lost = [state.pods[uid] for uid in dict.fromkeys(self._lost.read()) if uid in state.pods]
        for pod in sorted(lost, key=importance):
            node = entries[pod.uid].booking.node
            if node is not None and node not in nodes:
                self._patience.note_evicted(pod.uid)
                state.evict(pod.uid)
                yield Evict(pod, None, Reason.NODE_LOST, f"node {node} is gone")
