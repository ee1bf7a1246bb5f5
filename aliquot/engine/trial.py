"""The trial of one claim: it may start, it may preempt, or why it must wait.

A claim that fits (`fit`: the quotas allow it, and a node has room for each pod) is assumed in the
ledger. For one that does not, a victim search follows among the pods that its policy makes
eligible. The result is a verdict; evicting, nominating and parking are left to the cycle.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from itertools import chain

import numpy as np

from aliquot.engine.eviction_brake import EvictionBrake
from aliquot.engine.fit import Fit
from aliquot.engine.gang_claims import staying_pods
from aliquot.engine.holds.last_refusals import LastRefusals
from aliquot.engine.holds.nominations import Nominations
from aliquot.engine.holds.patience import Patience
from aliquot.engine.holds.precedence import Precedence
from aliquot.engine.holds.reservation import CAN_BE_PASSED, Reservations
from aliquot.engine.joint_search import JointSearch
from aliquot.engine.model.explanation import GateFigure
from aliquot.engine.model.gang import surplus_of
from aliquot.engine.model.reasons import BORROWERS, MOVES, NO_ROOM, VICTIMS, Reason, Refusal
from aliquot.engine.policies import Policy
from aliquot.engine.policies.eligible import Eligible, Rights, evictable_pods
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.effort import Effort
from aliquot.engine.queue.shared_refusals import SharedRefusals
from aliquot.engine.reclaim.plan import Plan
from aliquot.engine.reclaim.search import search
from aliquot.engine.state import State


class PutOff(Enum):
    """The claim needs a victim search, and this cycle has no effort left for one."""

    PUT_OFF = "put off"


Verdict = Refusal | Plan | PutOff | None
"""Why the claim waits; or the plan of a preemption; or None: it starts, and is assumed."""

PREEMPTION_MAY_HELP = (
    Reason.QUOTA_MAX_EXCEEDED,
    Reason.BORROWING_EXHAUSTED,
    Reason.RUNTIME_EXCEEDED,
    Reason.ANCESTOR_EXCEEDED,
    Reason.QUEUE_OVER_DESERVED,
    *NO_ROOM,
)
OVER_SHARE = (Reason.RUNTIME_EXCEEDED, Reason.ANCESTOR_EXCEEDED, Reason.QUEUE_OVER_DESERVED)
"""Refusals by a claim's share: such a claim may still start on idle capacity."""
_REPEATS = "; those who could make way did so before, and to ask them again goes in a circle"


class Trial:
    """Tries claims against the gates, the nodes, and the eligible victims."""

    def __init__(
        self,
        state: State,
        policy: Policy,
        nominations: Nominations,
        reservations: Reservations,
        brake: EvictionBrake,
        patience: Patience,
        last_refusals: LastRefusals,
    ) -> None:
        self.state = state
        self._brake = brake
        self._patience = patience
        self._last_refusals = last_refusals
        self._policy = policy
        self._nominations = nominations
        self._reservations = reservations
        self._precedence = Precedence(state, policy, nominations, reservations)
        self.fit = Fit(state, policy)
        self._joint_search = JointSearch(state, self.fit, self._search)
        self.effort = Effort()
        self.shared = SharedRefusals(state.placement)
        self.now = 0
        self._asked_at: int | None = None
        """When the question is asked that is being answered, if it says so."""

    def why(self, claim: Claim, now: int | None = None) -> Refusal | None:
        """Why a waiting claim cannot start now, with the numbers of now; None if it can.

        Times in the message are counted from `now`, or else from the last cycle.
        """
        self._asked_at = now
        with self.asking(claim) as only_class:
            refusal = self.fit.assume(claim, only_class=only_class)
            verdict = refusal and self.reclaim(claim, refusal)
        self._asked_at = None
        holding, reserved = self.state.ledger.holding, self.state.reserved
        nominated = all(uid in holding and uid not in reserved for uid in claim.uids())
        if nominated and isinstance(verdict, Plan) and not verdict.victims:
            # By its object: no cycle has noted yet which of the pods that leave it waits for.
            verdict = self._waiting_for_victims(claim, verdict.nodes)
        found = verdict if isinstance(verdict, Refusal) else refusal
        return found and self.describe(claim, found)

    @contextmanager
    def asking(self, claim: Claim) -> Iterator[str | None]:
        """Answer a question about a claim as if it were tried now; yields its only node class."""
        with self.state.speculating(claim, asking=True) as speculation:
            held = [uid for uid in claim.uids() if uid in self.state.ledger.holding]
            only_class = self._nominations.node_class(claim)
            speculation.set_aside(held)
            speculation.set_aside(self._precedence.yielding(claim, self.now))
            yield only_class

    def may_start(self, claim: Claim) -> bool:
        """Could a waiting claim start, with victims if need be, were it tried now?"""
        with self.asking(claim) as only_class:
            refusal = self.fit.assume(claim, only_class=only_class)
            if refusal is None or refusal.reason in OVER_SHARE:
                return True
            return not isinstance(self.reclaim(claim, refusal), Refusal)

    def victims(self, claim: Claim) -> tuple[str, ...]:
        """The uids of the pods that would be evicted for a claim that preempts, if it does now."""
        with self.asking(claim) as only_class:
            refusal = self.fit.assume(claim, only_class=only_class)
            verdict = refusal and self.reclaim(claim, refusal)
        found = verdict.victims if isinstance(verdict, Plan) else ()
        return tuple(victim.pod.uid for victim in found)

    def starts_on_idle(self, claim: Claim) -> bool:
        """Assume the whole claim on idle capacity; can it start there?

        What is held for the claim does not count against it, and it keeps no devices of its hold:
        those that a reservation waits for may be in use.
        """
        held = [uid for uid in claim.uids() if uid in self.state.ledger.holding]
        if not held:
            return self.fit.assume(claim, self.fit.idle_gates) is None
        with self.state.speculating() as speculation:
            speculation.set_aside(held)
            starts = self.fit.assume(claim, self.fit.idle_gates) is None
            if starts:
                speculation.keep()
        return starts

    def figures(self, claim: Claim, node_class: str | None) -> Iterator[GateFigure]:
        """What the policy's gate compares for the claim, of each quota that it belongs to."""
        for part in claim.parts or (claim,):
            yield from self._policy.gates.figures(part, node_class)

    def victims_of(self, claim: Claim) -> list[str]:
        """The uids of the victims that a nominated claim waits for."""
        return self._nominations.victims_of(claim)

    def describe(self, claim: Claim, refusal: Refusal) -> Refusal:
        """The refusal as users read it: where reservations are the cause, they are named."""
        reservations, reserved = self._reservations, self.state.reserved
        if claim.uid in reservations.active:
            if refusal.reason is Reason.WAITING_FOR_VICTIMS:
                return refusal
            told = reservations.describe(claim, self.now)
            watch = tuple(dict.fromkeys((*refusal.watch, *told.watch)))
            message = f"{told.message} ({refusal.reason}: {refusal.message})"
            return replace(told, message=message, resource=refusal.resource, watch=watch)
        if not reserved or refusal.reason not in CAN_BE_PASSED:
            return refusal
        with self.state.speculating(claim) as speculation:
            held = [uid for uid in claim.uids() if uid in self.state.ledger.holding]
            speculation.set_aside(dict.fromkeys([*held, *reserved]))
            if self.fit.assume(claim) is not None:
                return refusal
        words = f"room and right are reserved for {', '.join(sorted(reservations.paths()))}"
        words += ", which other claims kept passing"
        message = f"{words}: {refusal.message}"
        return replace(refusal, reason=Reason.RESERVED_FOR_OTHERS, message=message)

    def try_claim(self, claim: Claim) -> tuple[Verdict, list[str]]:
        """Assume the whole claim, or plan a preemption, or say why it waits.

        The claim's own nomination does not count against it; nor, if it is refused even so, do the
        holds that yield to it, whose pods are returned: they may have to be displaced.
        """
        ledger = self.state.ledger
        self.effort.note_trial(holding=bool(ledger.holding))
        if not ledger.holding:
            return self._try_alone(claim), []
        self.shared.clear()
        awaited = self._nominations.awaited_nodes(claim)
        only_class = self._nominations.node_class(claim)
        yielding: list[str] = []
        with self.state.speculating() as speculation:
            speculation.set_aside([uid for uid in claim.uids() if uid in ledger.holding])
            refusal = self.fit.assume(claim, only_class=only_class)
            verdict: Verdict = refusal
            if refusal is not None:
                yielding = self._precedence.yielding(claim, self.now)
                speculation.set_aside(yielding)
                if yielding:
                    refusal = self.fit.assume(claim, only_class=only_class)
                if refusal is not None and awaited:
                    return self._waiting_for_victims(claim, awaited), yielding
                verdict = refusal and self.reclaim(claim, refusal)
            if verdict is None:
                speculation.keep()
        return verdict, yielding

    def _try_alone(self, claim: Claim) -> Verdict:
        """Try a claim while nothing is held for another; the same for claims that are alike."""
        shared = self.shared.of(claim)
        if shared is not None:
            return shared
        refusal = self.fit.assume(claim)
        if refusal is not None and self._could_use_idle(claim, refusal):
            refusal = _until_others_start(refusal)
            self.shared.note(claim, refusal)
            return refusal
        verdict = refusal and self._make_way(claim, refusal)
        if not isinstance(verdict, Refusal):
            self.shared.clear()
        return verdict

    def _assume_plan(self, claim: Claim, plan: Plan, refusal: Refusal) -> Refusal | None:
        """Assume a plan without victims: the search found room that pod-by-pod placement missed."""
        state = self.state
        if refusal.reason not in NO_ROOM:
            return refusal
        for pod, node, devices in zip(claim.pods, plan.nodes, plan.devices, strict=True):
            booking = state.bookings.booking(pod, state.tree.quota_of(pod), node, devices)
            state.ledger.assume(pod.uid, booking)
        return None

    def reclaim(self, claim: Claim, refusal: Refusal) -> Verdict:
        """What a refused claim can do: preempt, wait for leaving pods, or wait as refused."""
        if self._could_use_idle(claim, refusal):
            return _until_others_start(refusal)
        return self._make_way(claim, refusal)

    def _make_way(self, claim: Claim, refusal: Refusal) -> Verdict:
        """The same for a claim that could not use idle capacity."""
        if refusal.reason not in PREEMPTION_MAY_HELP and BORROWERS not in refusal.watch:
            return refusal
        now = self.now if self._asked_at is None else self._asked_at
        braked = self._brake.still_refused(claim, refusal, now)
        if braked is not None:
            return braked
        if not self.effort.may_search:
            return PutOff.PUT_OFF
        self.effort.note_search()
        trying = not self.state.ledger.speculative
        none = trying and self._last_refusals.finds_no_victims(claim, refusal, now)
        plan = None if none else self._search(claim)
        if plan is None:
            return self._without_victims(claim, refusal, now)
        if plan.victims and self._makes_up_for_reservations(claim, plan):
            return replace(refusal, watch=(*refusal.watch, BORROWERS))
        if plan.victims and self._repeats(claim, plan):
            message = f"{refusal.message}{_REPEATS}"
            return replace(refusal, message=message, watch=(*refusal.watch, BORROWERS, MOVES))
        if not plan.victims and not self.state.leaving:
            return self._assume_plan(claim, plan, refusal)
        if not self._nominations.may_nominate(claim):
            return replace(refusal, watch=(*refusal.watch, BORROWERS))
        if plan.victims or claim.pods[0].uid not in self._nominations:
            return self._brake.refusal(claim, len(plan.victims), refusal, now) or plan
        return self._waiting_for_victims(claim, plan.nodes)

    def _waiting_for_victims(self, claim: Claim, nodes: Iterable[str]) -> Refusal:
        """The refusal of a nominated claim."""
        held, later = ", ".join(nodes), self._patience.words(claim)
        words = (
            f"holds {held}; {later}" if later else f"holds {held} until those who make way are gone"
        )
        return Refusal(Reason.WAITING_FOR_VICTIMS, words, claim.quota, watch=(VICTIMS,))

    def _without_victims(self, claim: Claim, refusal: Refusal, now: int) -> Refusal:
        """The refusal of a claim that finds no victims now."""
        if not self._may_preempt_later(claim, refusal):
            return refusal
        message, reclaim = refusal.message, self._policy.reclaim
        if not claim.parts:
            refusal = reclaim.name_no_victims(claim, refusal)
            message = refusal.message + reclaim.explain_no_victims(claim, refusal, now)
        return replace(refusal, message=message, watch=(*refusal.watch, BORROWERS))

    def _could_use_idle(self, claim: Claim, refusal: Refusal) -> bool:
        """Could it start on idle capacity, without victims, once claims within their share have?"""
        return refusal.reason in OVER_SHARE and self.fit.could_assume(claim, self.fit.idle_gates)

    def _may_preempt_later(self, claim: Claim, refusal: Refusal) -> bool:
        """Could pods that start later be victims for it, so that it should be tried again?"""
        state = self.state
        if claim.parts:
            return claim.preempts
        if claim.quota is None or not claim.preempts:
            return False
        shared = state.tree.quotas[claim.quota].is_parent or refusal.quota != claim.quota
        if refusal.reason is not Reason.QUOTA_MAX_EXCEEDED or shared:
            return True  # pods of other quotas could be victims
        if self._policy.reclaim.preempts_equals:
            return True
        own = state.bound_pods.quota == state.tree.slots[claim.quota]
        return bool((own & (state.bound_pods.priority < claim.priority)).any())

    def _repeats(self, claim: Claim, plan: Plan) -> bool:
        """Was the same preemption made before, with no outside change since?"""
        repeat_guard, victims = (
            self.state.repeat_guard,
            tuple(victim.pod for victim in plan.victims),
        )
        move = repeat_guard.move(self.state.waiting.fingerprint, claim.pods, victims)
        by = claim.uid if claim.has_rules else None
        return repeat_guard.repeats(move, self._policy.gates.is_owed(claim), by)

    def _makes_up_for_reservations(self, claim: Claim, plan: Plan) -> bool:
        """Would pods go for what a reservation lacks, which is a hold without victims?

        A claim that is owed takes what it is owed all the same.
        """
        reserved = [uid for uid in self.state.reserved if uid not in claim.uids()]
        held = [uid for uid in reserved if uid in self.state.ledger.entries]
        if not held or self._policy.gates.is_owed(claim):
            return False
        with self.state.speculating() as speculation:
            speculation.set_aside(held)
            least = self._search(claim)
        return least is None or len(least.victims) < len(plan.victims)

    def needs(self, claim: Claim, victim: str) -> bool:
        """Does a waiting claim still need this leaving pod to go?

        Not if it can start now, or will once the other leaving pods are gone, with all that is held
        for other claims left to them. Pods of a gang that are evicted together are needed together:
        else the claim would be given the room of one, and the others would be left too few to run.
        """
        state, leaving = self.state, self.state.leaving
        only_class = self._nominations.node_class(claim)
        entries = {uid: state.ledger.entries[uid] for uid in self._evicted_with(victim)}
        with state.speculating(claim, asking=True) as speculation:
            speculation.set_aside([uid for uid in claim.uids() if uid in state.ledger.holding])
            if self.fit.assume(claim, only_class=only_class) is None:
                return False
            for uid in entries:
                leaving.remove(uid)
            try:
                if claim.parts:
                    plan = self._joint_search.plan(claim)
                    return plan is None or bool(plan.victims)
                rights = self._policy.gates.rights(claim, only_class)
                classes = None if only_class is None else [only_class]
                return search(state, claim, rights, (), classes) is None
            finally:
                for uid, entry in entries.items():
                    leaving.add(uid, entry)

    def _evicted_with(self, victim: str) -> list[str]:
        """The leaving pods that go together with this one: itself, if its gang can spare it."""
        state = self.state
        pod = state.pods[victim]
        gang = state.gangs.of(pod)
        if gang is None:
            return [victim]
        left = surplus_of(gang, [*staying_pods(state, gang.name), pod])
        if left.total and left.by_task.get(pod.task, 1):
            return [victim]
        leaving = (uid for uid in state.gangs.members[gang.name] if uid in state.leaving)
        return [
            uid
            for uid in leaving
            if uid == victim or self._nominations.is_awaited(uid) or not state.pods[uid].terminating
        ]

    def _search(self, claim: Claim) -> Plan | None:
        """The best plan of victims for the claim.

        What pods without a quota free, the quotas may use. So where such pods are among the
        victims, others may not be needed: these are searched anew, as if the former were leaving.
        """
        with self._patience.without_deferred(claim, self.now) as fewer:
            plan = self._search_anew(claim)
        return self._search_anew(claim) if plan is None and fewer else plan

    def _search_anew(self, claim: Claim) -> Plan | None:
        """The best plan, with what is about to come free as the books have it."""
        if claim.parts:
            return self._joint_search.plan(claim) if claim.preempts else None
        plan = self._search_among(claim)
        if plan is None or claim.quota is None:
            return plan
        entries = self.state.ledger.entries
        first = [v for v in plan.victims if entries[v.pod.uid].booking.quota is None]
        if not first or len(first) == len(plan.victims):
            return plan
        gone = [victim.pod.uid for victim in first]
        with self._as_if_leaving(gone):
            rest = self._search_among(claim, gone)
        if rest is None or rest.nodes != plan.nodes:
            return plan
        better = replace(rest, victims=(*first, *rest.victims))
        return better if len(better.victims) < len(plan.victims) else plan

    @contextmanager
    def _as_if_leaving(self, uids: list[str]) -> Iterator[None]:
        """Count what these pods hold as about to come free."""
        leaving, entries = self.state.leaving, self.state.ledger.entries
        for uid in uids:
            leaving.add(uid, entries[uid])
        try:
            yield
        finally:
            for uid in uids:
                leaving.remove(uid)

    def _search_among(self, claim: Claim, besides: Iterable[str] = ()) -> Plan | None:
        """The best plan, over node classes where the claim's charge differs; without `besides`."""
        state = self.state
        spared = [state.bound_pods.slots[uid] for uid in besides]
        classes: list[str | None] = [None]
        if claim.is_charged_by_class():
            classes = list(self.fit.charged_classes(claim))
        plans = []
        for node_class, rights in self._rights_by_class(claim, classes):
            ranks: Iterator[Sequence[Eligible]] = chain(
                self._overstayed(claim),
                self._policy.reclaim.eligible_victims(claim, node_class, rights, self.now),
            )
            only_class = None if node_class is None else [node_class]
            if spared:
                ranks = (_without(rank, spared) for rank in ranks)
            plan = search(state, claim, rights, ranks if claim.preempts else (), only_class)
            if plan is not None:
                plans.append(plan)
        return min(plans, key=lambda plan: plan.key, default=None)

    def _rights_by_class(
        self, claim: Claim, classes: list[str | None]
    ) -> Iterator[tuple[str | None, Rights]]:
        """What must come free in the quotas on nodes of each class; there may be two ways."""
        for node_class in classes:
            yield node_class, self._policy.gates.rights(claim, node_class)
            other = self._policy.gates.other_rights(claim, node_class)
            if other is not None:
                yield node_class, other

    def _overstayed(self, claim: Claim) -> Iterator[list[Eligible]]:
        """The pods that run on room reserved for the claim beyond their stated end."""
        overstayed = self._reservations.overstayed(claim, self.now)
        if overstayed:
            bound = self.state.bound_pods
            mask = np.zeros_like(bound.node, dtype=bool)
            mask[[bound.slots[uid] for uid in overstayed]] = True
            words = f"runs beyond its stated end on what is reserved for {claim.pods[0].path}"
            mask &= evictable_pods(self.state, self.now) & self._policy.gates.shields.exposed()
            yield [Eligible(mask, Reason.BACKFILL_OVERDUE, lambda _: words)]


def _until_others_start(refusal: Refusal) -> Refusal:
    """The refusal of a claim that could use idle capacity once claims within their share have."""
    return replace(refusal, watch=(*refusal.watch, BORROWERS))


def _without(rank: Sequence[Eligible], slots: list[int]) -> list[Eligible]:
    """A rank of eligible victims, without the pods in these slots."""
    masks = [each.evictable.copy() for each in rank]
    for mask in masks:
        mask[slots] = False
    return [replace(each, evictable=mask) for each, mask in zip(rank, masks, strict=True)]
