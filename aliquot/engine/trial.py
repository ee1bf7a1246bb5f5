"""The trial of one claim: it may start, it may preempt, or why it must wait.

First the gates (the quotas allow it), then placement (a node has room for each pod). A claim that
passes both is assumed in the ledger. For a claim that does not, a victim search follows among the
pods that its policy makes eligible. The result is a verdict; evicting, nominating and parking are
left to the cycle.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from functools import partial
from itertools import chain

import numpy as np

from aliquot.engine.books.ledger import Booking
from aliquot.engine.eviction_brake import EvictionBrake
from aliquot.engine.gang_claims import set_pods, substitute
from aliquot.engine.holds.nominations import Nominations
from aliquot.engine.holds.precedence import Precedence
from aliquot.engine.holds.reservation import CAN_BE_PASSED, Reservations
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.reasons import BORROWERS, VICTIMS, Reason, Refusal
from aliquot.engine.placement.ask import Ask
from aliquot.engine.policies import Policy
from aliquot.engine.policies.eligible import Eligible, Rights, evictable_pods
from aliquot.engine.policies.gates import closed_gate, gpu_gate, gpu_refusal, max_gate, open_gate
from aliquot.engine.queue.claim import Claim
from aliquot.engine.queue.effort import Effort
from aliquot.engine.reclaim.search import Plan, search
from aliquot.engine.state import State

Gate = Callable[[Claim, str | None], Refusal | None]
"""A check that a claim passes or not, on nodes of a class."""


class PutOff(Enum):
    """The claim needs a victim search, and this cycle has no effort left for one."""

    PUT_OFF = "put off"


Verdict = Refusal | Plan | PutOff | None
"""Why the claim waits; or the plan of a preemption; or None: it starts, and is assumed."""

_PREEMPTION_MAY_HELP = (
    Reason.QUOTA_MAX_EXCEEDED,
    Reason.BORROWING_EXHAUSTED,
    Reason.RUNTIME_EXCEEDED,
    Reason.ANCESTOR_EXCEEDED,
    Reason.QUEUE_OVER_DESERVED,
    Reason.NO_NODE_FITS,
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
    ) -> None:
        self.state = state
        self._brake = brake
        self._policy = policy
        self._nominations = nominations
        self._reservations = reservations
        self._precedence = Precedence(state, policy, nominations, reservations)
        gates = (open_gate, closed_gate, gpu_gate, max_gate)
        always = tuple(partial(gate, state) for gate in gates)
        self.gates: tuple[Gate, ...] = (*always, policy.gates.gate)
        self.idle_gates: tuple[Gate, ...] = (*always, policy.gates.idle_gate)
        """The gates for a claim above its share when no claim within its share can start."""
        self._shortage: tuple[Ask, int]
        """The ask that no node held in the last trial, and how many like it were placed."""
        self.effort = Effort()
        self.now = 0
        self._asked_at: int | None = None
        """When the question is asked that is being answered, if it says so."""

    def why(self, claim: Claim, now: int | None = None) -> Refusal | None:
        """Why a waiting claim cannot start now, with the numbers of now; None if it can.

        Times in the message are counted from `now`, or else from the last cycle.
        """
        self._asked_at = now
        with self.asking(claim) as only_class:
            refusal = self.assume(claim, only_class=only_class)
            verdict = refusal and self.reclaim(claim, refusal)
        self._asked_at = None
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
            if self.assume(claim) is not None:
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
            refusal = self.assume(claim)
            return refusal and self.reclaim(claim, refusal), []
        awaited = self._nominations.awaited_nodes(claim)
        only_class = self._nominations.node_class(claim)
        yielding: list[str] = []
        with self.state.speculating() as speculation:
            speculation.set_aside([uid for uid in claim.uids() if uid in ledger.holding])
            refusal = self.assume(claim, only_class=only_class)
            verdict: Verdict = refusal
            if refusal is not None:
                yielding = self._precedence.yielding(claim, self.now)
                speculation.set_aside(yielding)
                if yielding:
                    refusal = self.assume(claim, only_class=only_class)
                if refusal is not None and awaited:
                    return _waiting_for_victims(claim, awaited), yielding
                verdict = refusal and self.reclaim(claim, refusal)
            if verdict is None:
                speculation.keep()
        return verdict, yielding

    def _assume_plan(self, claim: Claim, plan: Plan, refusal: Refusal) -> Refusal | None:
        """Assume a plan without victims: the search found room that pod-by-pod placement missed."""
        state = self.state
        if refusal.reason is not Reason.NO_NODE_FITS:
            return refusal
        for pod, node, devices in zip(claim.pods, plan.nodes, plan.devices, strict=True):
            booking = state.bookings.booking(pod, claim.quota, node, devices)
            state.ledger.assume(pod.uid, booking)
        return None

    def reclaim(self, claim: Claim, refusal: Refusal) -> Verdict:
        """What a refused claim can do: preempt, wait for leaving pods, or wait as refused."""
        if claim.parts:
            return refusal
        if self._could_use_idle(claim, refusal):
            return replace(refusal, watch=(*refusal.watch, BORROWERS))
        if refusal.reason not in _PREEMPTION_MAY_HELP and BORROWERS not in refusal.watch:
            return refusal
        now = self.now if self._asked_at is None else self._asked_at
        braked = self._brake.still_refused(claim, refusal, now)
        if braked is not None:
            return braked
        if not self.effort.may_search:
            return PutOff.PUT_OFF
        self.effort.note_search()
        plan = self._search(claim)
        if plan is None:
            if not self._may_preempt_later(claim, refusal):
                return refusal
            refusal = self._policy.reclaim.name_no_victims(claim, refusal)
            words = self._policy.reclaim.explain_no_victims(claim, refusal, now)
            message = refusal.message + words
            return replace(refusal, message=message, watch=(*refusal.watch, BORROWERS))
        if plan.victims and self._makes_up_for_reservations(claim, plan):
            return replace(refusal, watch=(*refusal.watch, BORROWERS))
        if plan.victims and self._repeats(claim, plan):
            message = f"{refusal.message}{_REPEATS}"
            return replace(refusal, message=message, watch=(*refusal.watch, BORROWERS))
        if not plan.victims and not self.state.leaving:
            return self._assume_plan(claim, plan, refusal)
        if not self._nominations.may_nominate(claim):
            return replace(refusal, watch=(*refusal.watch, BORROWERS))
        if plan.victims or claim.pods[0].uid not in self._nominations:
            return self._brake.refusal(claim, len(plan.victims), refusal, now) or plan
        return _waiting_for_victims(claim, plan.nodes)

    def _could_use_idle(self, claim: Claim, refusal: Refusal) -> bool:
        """Could it start on idle capacity, without victims, once claims within their share have?"""
        if refusal.reason not in OVER_SHARE:
            return False
        with self.state.speculating(claim):
            return self.assume(claim, self.idle_gates) is None

    def _may_preempt_later(self, claim: Claim, refusal: Refusal) -> bool:
        """Could pods that start later be victims for it, so that it should be tried again?"""
        state = self.state
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
        return repeat_guard.repeats(move, self._policy.gates.is_owed(claim))

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
        for other claims left to them.
        """
        state, leaving = self.state, self.state.leaving
        entry, only_class = state.ledger.entries[victim], self._nominations.node_class(claim)
        with state.speculating(claim, asking=True) as speculation:
            speculation.set_aside([uid for uid in claim.uids() if uid in state.ledger.holding])
            if self.assume(claim, only_class=only_class) is None:
                return False
            leaving.remove(victim)
            try:
                rights = self._policy.gates.rights(claim, only_class)
                classes = None if only_class is None else [only_class]
                return search(state, claim, rights, (), classes) is None
            finally:
                leaving.add(victim, entry)

    def _search(self, claim: Claim) -> Plan | None:
        """The best plan of victims for the claim.

        What pods without a quota free, the quotas may use. So where such pods are among the
        victims, others may not be needed: these are searched anew, as if the former were leaving.
        """
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
            classes = list(self.charged_classes(claim))
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

    def assume(
        self, claim: Claim, gates: tuple[Gate, ...] | None = None, only_class: str | None = None
    ) -> Refusal | None:
        """Assume the claim, without victims, or say why not.

        On nodes of `only_class`, if that is given. Where no node holds a pod of a gang, another
        waiting pod of the gang may take its place.
        """
        refusal = self._assume(claim, gates or self.gates, only_class)
        if refusal is None or not claim.others:
            return refusal
        pods, others, most = claim.pods, claim.others, dict[Ask, int]()
        retried: Refusal | None = refusal
        while retried is not None and claim.others and retried.reason is Reason.NO_NODE_FITS:
            most.update([self._shortage])
            if not substitute(self.state, claim, most):
                break
            retried = self._assume(claim, gates or self.gates, only_class)
            if retried is None:
                return None
        if claim.pods is not pods:
            set_pods(self.state, claim, pods, others)
        return refusal

    def _assume(
        self, claim: Claim, gates: tuple[Gate, ...], only_class: str | None
    ) -> Refusal | None:
        """Assume exactly the claim's pods, or say why not."""
        first = claim.pods[0]
        if claim.missing:
            return self._incomplete(claim)
        if first.gated:
            return Refusal(Reason.SCHEDULING_GATED, "the pod has scheduling gates to be removed")
        if first.unsupported:
            return Refusal(Reason.NOT_SUPPORTED, first.unsupported)
        if first.terminating:
            return Refusal(Reason.TERMINATING, "the pod is being deleted")
        if any(ask.by_class for ask in claim.asks):
            return self._assume_by_class(claim, gates, only_class)
        return self._first_refusal(claim, None, gates) or self.place(claim, None)

    def check_gates(self, claim: Claim, idle: bool = False) -> Refusal | None:
        """Why the quotas would not let the claim start, whether or not a node has room.

        `idle`: on idle capacity, when no claim within its share can start.
        """
        return self._first_refusal(claim, None, self.idle_gates if idle else self.gates)

    def _incomplete(self, claim: Claim) -> Refusal:
        gang = self.state.gangs.of(claim.pods[0])
        assert gang is not None
        words = f"gang {gang.name}: {gang.min_member} pods start together, {claim.missing} of them"
        lack = "is missing" if claim.missing == 1 else "are missing"
        return Refusal(Reason.GANG_INCOMPLETE, f"{words} {lack}", claim.quota)

    def _assume_by_class(
        self, claim: Claim, gates: tuple[Gate, ...], only_class: str | None
    ) -> Refusal | None:
        """Where the charge depends on the node class: place only on classes that pass the gates."""
        classes = self.charged_classes(claim) if only_class is None else [only_class]
        by_class = {
            node_class: self._first_refusal(claim, node_class, gates) for node_class in classes
        }
        refusals = [refusal for refusal in by_class.values() if refusal is not None]
        allowed = [node_class for node_class in classes if by_class[node_class] is None]
        refusal = refusals[0] if refusals and not allowed else self.place(claim, allowed)
        if refusal is None or not refusals:
            return refusal
        watch = {watch: None for each in (refusal, *refusals) for watch in each.watch}
        message = refusal.message
        if allowed:
            message += f"; of nodes of another class it is too much: {refusals[0].message}"
        return replace(refusal, message=message, watch=tuple(watch))

    def charged_classes(self, claim: Claim) -> list[str]:
        """The node classes open to the claim's pods whose charge depends on the class."""
        asks = {ask for ask in claim.asks if ask.by_class}
        return sorted({each for ask in asks for each in self.state.placement.classes(ask)})

    def _first_refusal(
        self, claim: Claim, node_class: str | None, gates: tuple[Gate, ...]
    ) -> Refusal | None:
        """The first gate's refusal; of a gang over several quotas, each quota's part is checked."""
        for part in claim.parts or (claim,):
            for gate in gates:
                refusal = gate(part, node_class)
                if refusal is not None:
                    return refusal
        return None

    def place(self, claim: Claim, classes: list[str] | None) -> Refusal | None:
        """Assume a node for each pod, or for none; the pods that are hardest to place first."""
        if claim.size == 1:
            return self._place_one(claim, classes)
        state = self.state
        pairs = list(zip(claim.pods, claim.asks, strict=True))
        alike = len(set(claim.asks)) == 1
        known = state.placement.known_capacity(claim.asks[0], claim.size) if alike else None
        if known is not None and classes is None:
            self._shortage = claim.asks[0], known[0]
            return self._for_gang(claim, known[1], known[0])
        if not alike:
            hardness = {ask: state.placement.hardness(ask) for ask in claim.asks}
            pairs.sort(key=lambda pair: hardness[pair[1]], reverse=True)
        refusal, placed, ask = self._place_all(claim, pairs, classes)
        if refusal is None or refusal.reason is Reason.GPU_QUOTA_EXCEEDED:
            return refusal
        for nodes in state.placement.domains_to_try(claim.asks):
            with state.placement.confined(nodes):
                if self._place_all(claim, pairs, classes)[0] is None:
                    return None
        if alike and classes is None and refusal.reason is Reason.NO_NODE_FITS:
            state.placement.note_capacity(ask, placed, refusal)
        self._shortage = ask, sum(each == ask for _, each in pairs[:placed])
        return self._for_gang(claim, refusal, placed)

    def _place_all(
        self, claim: Claim, pairs: list[tuple[Pod, Ask]], classes: list[str] | None
    ) -> tuple[Refusal | None, int, Ask]:
        """Assume a node for each pod, or for none; why not, after how many, for which ask."""
        state = self.state
        with state.speculating() as speculation:
            for placed, (pod, ask) in enumerate(pairs):
                node = state.placement.find(ask, classes if ask.by_class else None)
                if isinstance(node, Refusal):
                    return node, placed, ask
                quota = state.tree.quota_of(pod) if claim.parts else claim.quota
                booking = self._booking(claim, pod, ask, quota, node)
                if isinstance(booking, Refusal):
                    return booking, placed, ask
                state.ledger.assume(pod.uid, booking)
            speculation.keep()
        return None, len(pairs), pairs[-1][1]

    def _place_one(self, claim: Claim, classes: list[str] | None) -> Refusal | None:
        """`_place` for a claim of one pod, without its overhead: most claims are of one pod."""
        state, pod, ask = self.state, claim.pods[0], claim.asks[0]
        node = state.placement.find(ask, classes if ask.by_class else None)
        if isinstance(node, Refusal):
            self._shortage = ask, 0
            return node
        booking = self._booking(claim, pod, ask, claim.quota, node)
        if isinstance(booking, Refusal):
            return booking
        state.ledger.assume(pod.uid, booking)
        return None

    def _booking(
        self, claim: Claim, pod: Pod, ask: Ask, quota: str | None, node: str
    ) -> Booking | Refusal:
        """A pod's booking on the best node; where the GPU quota refuses its devices, on another."""
        state = self.state
        booking = state.bookings.booking(pod, quota, node)
        refusal = gpu_refusal(state, claim, pod, booking.gpu)
        if refusal is None:
            return booking
        tried = {state.devices.kinds(booking.gpu)}
        for other in state.placement.alternatives(ask, node):
            booking = state.bookings.booking(pod, quota, other)
            kinds = state.devices.kinds(booking.gpu)
            if kinds not in tried:
                tried.add(kinds)
                if gpu_refusal(state, claim, pod, booking.gpu) is None:
                    return booking
        return refusal

    def _for_gang(self, claim: Claim, refusal: Refusal, placed: int) -> Refusal:
        """The refusal of a gang: which pod found no room, after how many that did."""
        words = f"room for {placed} of {claim.size} pods that start together; for the next one, "
        return replace(refusal, message=words + refusal.message)


def _without(rank: Sequence[Eligible], slots: list[int]) -> list[Eligible]:
    """A rank of eligible victims, without the pods in these slots."""
    masks = [each.evictable.copy() for each in rank]
    for mask in masks:
        mask[slots] = False
    return [replace(each, evictable=mask) for each, mask in zip(rank, masks, strict=True)]


def _waiting_for_victims(claim: Claim, nodes: Iterable[str]) -> Refusal:
    """The refusal of a nominated claim."""
    words = f"holds {', '.join(nodes)} until those who make way are gone"
    return Refusal(Reason.WAITING_FOR_VICTIMS, words, claim.quota, watch=(VICTIMS,))
