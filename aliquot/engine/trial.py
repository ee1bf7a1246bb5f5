"""Trying a claim: may it start, and where; if not, who could make way for it, or why nobody can.

First the gates (may it start, as far as the quotas go), then placement (which node has room). What
passes both is reserved. A claim that does not may have others make way, as its policy offers them;
what comes of the trial is a verdict, and carrying it out is for the cycle.
"""

from collections.abc import Callable
from dataclasses import replace

from aliquot.engine.books.ledger import Booking, Entry
from aliquot.engine.books.quota_tree import OUTSIDE, ROOT
from aliquot.engine.gang_claims import stand_in, take
from aliquot.engine.holds.nominations import Holds
from aliquot.engine.model.objects import Pod
from aliquot.engine.model.reasons import BORROWERS, ROOM, Reason, Refusal, Watch
from aliquot.engine.placement.best_node import Ask
from aliquot.engine.policies import Policy
from aliquot.engine.policies.gates import closed_gate, gpu_gate, gpu_refusal, max_gate
from aliquot.engine.queue.claim import Claim
from aliquot.engine.reclaim.search import Plan, search
from aliquot.engine.state import State

Gate = Callable[[State, Claim, str | None], Refusal | None]
"""A check that a claim passes or not, on nodes of a class."""

Verdict = Refusal | Plan | None
"""Why not; or who must go first; or nothing: it may start, and what it takes is reserved."""

_OTHERS_COULD_HELP = (
    Reason.QUOTA_MAX_EXCEEDED,
    Reason.BORROWING_EXHAUSTED,
    Reason.RUNTIME_EXCEEDED,
    Reason.ANCESTOR_EXCEEDED,
    Reason.QUEUE_OVER_DESERVED,
    Reason.NO_NODE_FITS,
)
BEYOND = (Reason.RUNTIME_EXCEEDED, Reason.ANCESTOR_EXCEEDED, Reason.QUEUE_OVER_DESERVED)
"""Who waits for one of these might use what would otherwise be idle."""
_IN_A_CIRCLE = "; those who could make way did so before, and to ask them again goes in a circle"


class Trial:
    """Tries claims against the gates, the nodes, and those who could make way."""

    def __init__(self, state: State, policy: Policy, holds: Holds) -> None:
        self.state = state
        self._policy = policy
        self._holds = holds
        self._gates = (closed_gate, gpu_gate, max_gate, policy.gate)
        self._short_of: tuple[Ask, int]
        """For what no node was found in the last trial, and for how many like it there were."""
        self.now = 0

    def why(self, claim: Claim) -> Refusal | None:
        """Why a waiting claim cannot start now, with the numbers of now; None if it can."""
        ledger = self.state.ledger
        held = [uid for uid in claim.uids() if uid in ledger.holding]
        only = self._holds.node_class(claim)
        lesser = self._holds.lesser(claim)
        pods, others = claim.pods, claim.others
        with ledger.lifted([*held, *(u for u in lesser if u not in held)]):
            before = {pod.uid: ledger.entries.get(pod.uid) for pod in claim.members}
            refusal = self.judge(claim, only=only)
            verdict = refusal and self._reclaim(claim, refusal)
            ledger.restore(before)
        take(self.state, claim, pods, others)
        return verdict if isinstance(verdict, Refusal) else refusal

    def book(self, claim: Claim) -> tuple[Verdict, list[str]]:
        """Reserve right and room for the whole claim; or say who must go first, or why not.

        What is held for the claim itself does not stand in its way; nor, if that is not enough,
        what is held for lesser claims of its quota: those who may have to stand back are named.
        """
        ledger = self.state.ledger
        if not ledger.holding:
            refusal = self.judge(claim)
            return refusal and self._reclaim(claim, refusal), []
        only = self._holds.node_class(claim)
        with ledger.lifted(uid for uid in claim.uids() if uid in ledger.holding):
            refusal = self.judge(claim, only=only)
            if refusal is None:
                return None, []
            lesser = self._holds.lesser(claim)
            with ledger.lifted(lesser):
                refusal = self.judge(claim, only=only) if lesser else refusal
                verdict = refusal and self._reclaim(claim, refusal)
        return verdict, lesser

    def _as_planned(self, claim: Claim, plan: Plan, refusal: Refusal) -> Refusal | None:
        """Nobody need go: the search has found room that looking pod by pod had missed."""
        state = self.state
        if refusal.reason is not Reason.NO_NODE_FITS:
            return refusal
        for pod, node, devices in zip(claim.pods, plan.nodes, plan.devices, strict=True):
            booking = state.terms.booking(pod, claim.quota, node, devices)
            state.ledger.reserve(pod.uid, booking)
        return None

    def _reclaim(self, claim: Claim, refusal: Refusal) -> Verdict:
        """A refused claim may have others make way for it, or wait for those who are leaving."""
        if claim.parts:
            return refusal
        if self._could_use_what_is_idle(claim, refusal):
            return replace(refusal, watch=(*refusal.watch, BORROWERS))
        if refusal.reason not in _OTHERS_COULD_HELP and BORROWERS not in refusal.watch:
            return refusal
        plan = self._search(claim)
        if plan is None:
            if not self._may_hope(claim, refusal):
                return refusal
            message = refusal.message + self._policy.hint(self.state, claim, refusal)
            return replace(refusal, message=message, watch=(*refusal.watch, BORROWERS))
        if plan.victims and self._goes_round(claim, plan):
            message = f"{refusal.message}{_IN_A_CIRCLE}"
            return replace(refusal, message=message, watch=(*refusal.watch, BORROWERS))
        if not plan.victims and not self.state.leaving:
            return self._as_planned(claim, plan, refusal)
        if plan.victims or claim.pods[0].uid not in self._holds:
            return plan
        words = f"holds {', '.join(plan.nodes)} until those who make way are gone"
        everything = (ROOM, Watch(quota=ROOT), Watch(quota=OUTSIDE), Watch(quota=claim.quota))
        return Refusal(Reason.WAITING_FOR_VICTIMS, words, claim.quota, watch=everything)

    def _could_use_what_is_idle(self, claim: Claim, refusal: Refusal) -> bool:
        """Could it start without anybody going, once nothing else starts within its share?"""
        if refusal.reason not in BEYOND:
            return False
        pods, others, ledger = claim.pods, claim.others, self.state.ledger
        before = {pod.uid: ledger.entries.get(pod.uid) for pod in claim.members}
        found = self.judge(claim, (closed_gate, gpu_gate, max_gate, self._policy.beyond))
        ledger.restore(before)
        take(self.state, claim, pods, others)
        return found is None

    def _may_hope(self, claim: Claim, refusal: Refusal) -> bool:
        """Could others make way for it some time, if something else changes?"""
        state = self.state
        if claim.quota is None or not claim.preempts:
            return False
        shared = state.tree.quotas[claim.quota].is_parent or refusal.quota != claim.quota
        if refusal.reason is not Reason.QUOTA_MAX_EXCEEDED or shared:
            return True  # others than its own quota's pods could give
        if self._policy.equals_give:
            return True
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
            classes = list(self._classes(claim))
        plans = []
        for node_class in classes:
            rights = self._policy.rights(state, claim, node_class)
            offers = self._policy.offers(state, claim, node_class, rights, self.now)
            only = None if node_class is None else [node_class]
            plan = search(state, claim, rights, offers if claim.preempts else (), only)
            if plan is not None:
                plans.append(plan)
        return min(plans, key=lambda plan: plan.key, default=None)

    def judge(
        self, claim: Claim, gates: tuple[Gate, ...] | None = None, only: str | None = None
    ) -> Refusal | None:
        """Reserve right and room for the claim, or say why not; nobody goes for it.

        Only on nodes of one class, if that is given. Where a pod of a gang finds no room, another
        may stand in for it.
        """
        refusal = self._judge(claim, gates or self._gates, only)
        if refusal is None or not claim.others:
            return refusal
        pods, others, most = claim.pods, claim.others, dict[Ask, int]()
        again: Refusal | None = refusal
        while again is not None and claim.others and again.reason is Reason.NO_NODE_FITS:
            most.update([self._short_of])
            if not stand_in(self.state, claim, most):
                break
            again = self._judge(claim, gates or self._gates, only)
            if again is None:
                return None
        if claim.pods is not pods:
            take(self.state, claim, pods, others)
        return refusal

    def _judge(self, claim: Claim, gates: tuple[Gate, ...], only: str | None) -> Refusal | None:
        first = claim.pods[0]
        if claim.missing:
            return self._incomplete(claim)
        if first.gated:
            return Refusal(Reason.SCHEDULING_GATED, "the pod has scheduling gates to be removed")
        if first.terminating:
            return Refusal(Reason.TERMINATING, "the pod is being deleted")
        if any(ask.by_class for ask in claim.asks):
            return self._judge_by_class(claim, gates, only)
        return self._gate(claim, None, gates) or self._place(claim, None)

    def right(self, claim: Claim) -> Refusal | None:
        """Why the quotas would not let it start, room aside."""
        return self._gate(claim, None, self._gates)

    def _incomplete(self, claim: Claim) -> Refusal:
        gang = self.state.gangs.of(claim.pods[0])
        assert gang is not None
        words = f"gang {gang.name}: {gang.min_member} pods start together, {claim.missing} of them"
        lack = "is missing" if claim.missing == 1 else "are missing"
        return Refusal(Reason.GANG_INCOMPLETE, f"{words} {lack}", claim.quota)

    def _judge_by_class(
        self, claim: Claim, gates: tuple[Gate, ...], only: str | None
    ) -> Refusal | None:
        """Where the charge depends on the node's class: only classes that the gates pass."""
        classes = self._classes(claim) if only is None else [only]
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

    def _classes(self, claim: Claim) -> list[str]:
        """The classes of nodes that its pods may run on whose charge depends on it."""
        asks = {ask for ask in claim.asks if ask.by_class}
        return sorted({each for ask in asks for each in self.state.placement.classes(ask)})

    def _gate(
        self, claim: Claim, node_class: str | None, gates: tuple[Gate, ...]
    ) -> Refusal | None:
        for part in claim.parts or (claim,):
            for gate in gates:
                refusal = gate(self.state, part, node_class)
                if refusal is not None:
                    return refusal
        return None

    def _place(self, claim: Claim, classes: list[str] | None) -> Refusal | None:
        """Reserve a node for each pod, or for none; first for those who are hard to place."""
        if claim.size == 1:
            return self._place_one(claim, classes)
        state = self.state
        before: dict[str, Entry | None] = {}
        pairs = list(zip(claim.pods, claim.asks, strict=True))
        alike = len(set(claim.asks)) == 1
        known = state.placement.too_many(claim.asks[0], claim.size) if alike else None
        if known is not None and classes is None:
            self._short_of = claim.asks[0], known[0]
            return self._of_several(claim, known[1], known[0])
        if not alike:
            hard = {ask: state.placement.hardness(ask) for ask in claim.asks}
            pairs.sort(key=lambda pair: hard[pair[1]], reverse=True)
        for pod, ask in pairs:
            node = state.placement.find(ask, classes if ask.by_class else None, len(before))
            if isinstance(node, Refusal):
                if alike and classes is None:
                    state.placement.note_how_many(ask, len(before), node)
                placed = sum(each == ask and other.uid in before for other, each in pairs)
                self._short_of = ask, placed
                state.ledger.restore(before)
                return self._of_several(claim, node, len(before))
            before[pod.uid] = state.ledger.entries.get(pod.uid)
            quota = state.tree.home(pod) if claim.parts else claim.quota
            booking = self._booking(claim, pod, ask, quota, node)
            if isinstance(booking, Refusal):
                del before[pod.uid]
                state.ledger.restore(before)
                return booking
            state.ledger.reserve(pod.uid, booking)
        return None

    def _place_one(self, claim: Claim, classes: list[str] | None) -> Refusal | None:
        """The same for a single pod: most claims are."""
        state, pod, ask = self.state, claim.pods[0], claim.asks[0]
        node = state.placement.find(ask, classes if ask.by_class else None)
        if isinstance(node, Refusal):
            self._short_of = ask, 0
            return node
        booking = self._booking(claim, pod, ask, claim.quota, node)
        if isinstance(booking, Refusal):
            return booking
        state.ledger.reserve(pod.uid, booking)
        return None

    def _booking(
        self, claim: Claim, pod: Pod, ask: Ask, quota: str | None, node: str
    ) -> Booking | Refusal:
        """What a pod takes on the best node; if that is too much of GPUs, on another one."""
        state = self.state
        booking = state.terms.booking(pod, quota, node)
        beyond = gpu_refusal(state, claim, pod, booking.gpu)
        if beyond is None:
            return booking
        tried = {state.devices.kinds(booking.gpu)}
        for other in state.placement.others(ask, node):
            booking = state.terms.booking(pod, quota, other)
            kinds = state.devices.kinds(booking.gpu)
            if kinds not in tried:
                tried.add(kinds)
                if gpu_refusal(state, claim, pod, booking.gpu) is None:
                    return booking
        return beyond

    def _of_several(self, claim: Claim, refusal: Refusal, placed: int) -> Refusal:
        """A gang finds room for all that it needs, or for nobody."""
        words = f"room for {placed} of {claim.size} pods that start together; for the next one, "
        return replace(refusal, message=words + refusal.message)
