"""Whether a claim may start now, without victims: the gates, then a node for each pod.

First the gates (the quotas allow it), then placement (a node has room for each pod). A claim that
passes both is assumed in the ledger, as a whole or not at all; for one that does not, the refusal
says which gate, or what the nodes lack. What is tried only is taken back by its caller, in
`state.speculating()`.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from aliquot.engine.books.ledger import Booking
from aliquot.engine.books.node_classes import ANY_CLASS
from aliquot.engine.gang_claims import lacking, set_pods, substitute
from aliquot.engine.gang_domains import GangDomains
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.reasons import NO_ROOM, Reason, Refusal
from aliquot.engine.placement.ask import Ask
from aliquot.engine.placement.start_order import start_order
from aliquot.engine.policies import Policy
from aliquot.engine.policies.gates import closed_gate, gpu_gate, gpu_refusal, max_gate, open_gate
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State

Gate = Callable[[Claim, str | None], Refusal | None]
"""A check that a claim passes or not, on nodes of a class."""


class Fit:
    """Fits claims to quotas and nodes, and assumes those that do."""

    def __init__(self, state: State, policy: Policy) -> None:
        self.state = state
        gates = (open_gate, closed_gate, gpu_gate, max_gate)
        always = tuple(partial(gate, state) for gate in gates)
        self.gates: tuple[Gate, ...] = (*always, policy.gates.gate)
        self.idle_gates: tuple[Gate, ...] = (*always, policy.gates.idle_gate)
        """The gates for a claim above its share when no claim within its share can start."""
        self._shortage: tuple[Ask, int]
        """The ask that no node held in the last trial, and how many like it were placed."""
        self._placed = 0
        """How many pods of the gang that was last refused for room found some."""

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
        while retried is not None and claim.others and retried.reason in NO_ROOM:
            most.update([self._shortage])
            if not substitute(self.state, claim, most):
                break
            retried = self._assume(claim, gates or self.gates, only_class)
            if retried is None:
                return None
        if claim.pods is not pods:
            set_pods(self.state, claim, pods, others)
        return refusal

    def could_assume(self, claim: Claim, gates: tuple[Gate, ...]) -> bool:
        """Would the gates let the claim pass, and is there room? It is not assumed."""
        if not claim.missing and self.surely_fits(claim):
            return self._first_refusal(claim, None, gates) is None
        with self.state.speculating(claim):
            return self.assume(claim, gates) is None

    def surely_fits(self, claim: Claim) -> bool:
        """Is there room for all pods of the claim, as one look at the nodes tells?

        False also where that look is not enough: for pods that differ, or that come with devices, a
        topology, or rules about other pods.
        """
        first, ask = claim.pods[0], claim.asks[0]
        if first.blocked or claim.parts or claim.topology is not None:
            return False
        if ask.rule_set is not None or ask.gpu is not None or ask.by_class:
            return False
        alike = claim.size == 1 or all(each is ask for each in claim.asks)
        return alike and self.state.placement.has_room_for(ask, claim.size)

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
        if claim.parts:
            return self._assume_parts(claim, gates, only_class)
        if len(claim.pods) == 1 and claim.topology is None and not claim.asks[0].by_class:
            # most claims are of one pod: `_assume_by_gates` and `place` without their overhead
            return self._first_refusal(claim, None, gates) or self._place_one(claim, None)
        return self._assume_by_gates(claim, gates, only_class)

    def _assume_by_gates(
        self, claim: Claim, gates: tuple[Gate, ...], only_class: str | None
    ) -> Refusal | None:
        """Assume a claim that the gates let pass, where its charge depends on that by class."""
        if claim.asks[0].by_class or any(ask.by_class for ask in claim.asks[1:]):
            return self._assume_by_class(claim, gates, only_class)
        return self._first_refusal(claim, None, gates) or self.place(claim, None)

    def _assume_parts(
        self, claim: Claim, gates: tuple[Gate, ...], only_class: str | None
    ) -> Refusal | None:
        """Assume a claim over several quotas if each lets its part pass, the others in place.

        Quotas may have bounds in common, which each part alone would respect.
        """
        with self.state.speculating() as speculation:
            refusal = self._assume_by_gates(claim, gates, only_class)
            if refusal is None:
                refused = (self._refusal_of_part(part, gates) for part in claim.parts)
                refusal = next((each for each in refused if each is not None), None)
            if refusal is None:
                speculation.keep()
        return refusal

    def _refusal_of_part(self, part: Claim, gates: tuple[Gate, ...]) -> Refusal | None:
        """Why the gates do not let a part of an assumed claim pass, with the others in place."""
        node_class = None
        if part.is_charged_by_class():
            node = self.state.nodes.at(self.state.ledger.entries[part.uid].node)
            node_class = None if node is None else node.charge_class
        with self.state.speculating() as speculation:
            speculation.set_aside(part.uids())
            return self._first_refusal(part, node_class, gates)

    def check_gates(self, claim: Claim, idle: bool = False) -> Refusal | None:
        """Why the quotas would not let the claim start, whether or not a node has room.

        `idle`: on idle capacity, when no claim within its share can start.
        """
        return self._first_refusal(claim, None, self.idle_gates if idle else self.gates)

    def _incomplete(self, claim: Claim) -> Refusal:
        return Refusal(Reason.GANG_INCOMPLETE, lacking(self.state, claim), claim.quota)

    def _assume_by_class(
        self, claim: Claim, gates: tuple[Gate, ...], only_class: str | None
    ) -> Refusal | None:
        """Where the charge depends on the node class: place only on classes that pass the gates."""
        if only_class is None and any(ask.by_model for ask in claim.asks):
            return self._assume_by_model(claim, gates)
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

    def _assume_by_model(self, claim: Claim, gates: tuple[Gate, ...]) -> Refusal | None:
        """Where quotas are charged by the model of the cards, cards that no min needs come first.

        Mostly all classes pass the gates, as the most does that any of them charges.
        """
        classes = self.charged_classes(claim)
        if not classes:
            return self._first_refusal(claim, None, gates) or self.place(claim, None)
        if self._first_refusal(claim, ANY_CLASS, gates) is None:
            return self._place_on_spare(claim, classes, None)
        by_class = {each: self._first_refusal(claim, each, gates) for each in classes}
        allowed = [each for each in classes if by_class[each] is None]
        refusals = [refusal for refusal in by_class.values() if refusal is not None]
        refusal = self._place_on_spare(claim, allowed, allowed) if allowed else refusals[0]
        if refusal is None or (refusals and self._place_apart(claim, gates)):
            return None
        watch = {watch: None for each in (refusal, *refusals) for watch in each.watch}
        others = dict.fromkeys(each.message for each in refusals if each is not refusal)
        others.pop(refusal.message, None)
        message = "; or, on other nodes: ".join((refusal.message, *others))
        return replace(refusal, message=message, watch=tuple(watch))

    def _place_on_spare(
        self, claim: Claim, classes: list[str], only: list[str] | None
    ) -> Refusal | None:
        """Place the claim on cards that no unused min of a model needs; else on any of `only`."""
        mins = self.state.model_mins
        if not mins:
            return self.place(claim, only)
        if claim.size == 1 and claim.topology is None:
            return self._place_one(claim, only, classes)
        if not mins.spares(claim.charge(ANY_CLASS), claim.quota):
            spare = self._spare_classes(claim, classes)
            if 0 < len(spare) < len(classes) and self.place(claim, spare) is None:
                return None
        return self.place(claim, only)

    def _spare_classes(self, claim: Claim, classes: list[str]) -> list[str]:
        """Those of these classes with cards for the claim that no unused min of others needs."""
        spares = self.state.model_mins.spares
        return [each for each in classes if spares(claim.charge(each), claim.quota)]

    def _place_apart(self, claim: Claim, gates: tuple[Gate, ...]) -> bool:
        """Could a gang start on cards of several models, where no single one has right for all?

        Pod by pod, each counting for the next.
        """
        if claim.size == 1 or claim.parts:
            return False
        state = self.state
        with state.speculating() as speculation:
            for pod in claim.pods:
                alone = state.claims.of((pod,))
                alone.held = claim.held
                classes = self.charged_classes(alone)
                allowed = [e for e in classes if self._first_refusal(alone, e, gates) is None]
                if classes and not allowed:
                    return False
                if not classes and self._first_refusal(alone, None, gates) is not None:
                    return False
                if self._place_on_spare(alone, allowed, allowed or None) is not None:
                    return False
            speculation.keep()
        return True

    def charged_classes(self, claim: Claim) -> list[str]:
        """The node classes open to the claim's pods whose charge depends on the class."""
        asks = {ask for ask in claim.asks if ask.by_class}
        return sorted({each for ask in asks for each in self.state.placement.classes(ask)})

    def _first_refusal(
        self, claim: Claim, node_class: str | None, gates: tuple[Gate, ...]
    ) -> Refusal | None:
        """The first gate's refusal; of a gang over several quotas, the refusal of any part."""
        if claim.parts:
            return self._first_refusal_of_parts(claim, node_class, gates)
        for gate in gates:
            refusal = gate(claim, node_class)
            if refusal is not None:
                return refusal
        return None

    def _first_refusal_of_parts(
        self, claim: Claim, node_class: str | None, gates: tuple[Gate, ...]
    ) -> Refusal | None:
        """The first refusal of a part, with the parts before it assumed: they may share parents."""
        state = self.state
        with state.speculating():
            for part in claim.parts:
                refusal = self._first_refusal(part, node_class, gates)
                if refusal is not None:
                    return refusal
                for pod, ask in zip(part.pods, part.asks, strict=True):
                    booking = state.bookings.pending(pod)._replace(charge=ask.charge(node_class))
                    state.ledger.assume(pod.uid, booking)
        return None

    def place(self, claim: Claim, classes: list[str] | None) -> Refusal | None:
        """Assume a node for each pod, or for none: in one domain, if the gang asks for that."""
        if claim.topology is None:
            return self._place(claim, classes)
        domains = GangDomains(self.state, claim, claim.topology, classes)
        placed = 0
        for nodes in domains.masks():
            with self.state.placement.confined(nodes):
                refusal = self._place(claim, classes)
            if refusal is None or refusal.reason is Reason.GPU_QUOTA_EXCEEDED:
                return refusal
            placed = max(placed, self._placed)
        if not claim.topology.required:
            return self._place(claim, classes)
        return self._refuse_domains(domains, placed)

    def _refuse_domains(self, domains: GangDomains, placed: int) -> Refusal:
        """Why no domain holds a gang; `placed` is for how many pods there was room, if tried."""
        best = domains.best()
        if best is not None:
            self._shortage = best.scarcest
        else:
            self._shortage = domains.first_ask, 0
        tried = best is not None and best.fits >= domains.size
        return domains.refusal(best, placed if tried else None)

    def _place(self, claim: Claim, classes: list[str] | None) -> Refusal | None:
        """Assume a node for each pod, or for none; the pods that are hardest to place first."""
        if claim.size == 1:
            return self._place_one(claim, classes)
        state = self.state
        pairs = list(zip(claim.pods, claim.asks, strict=True))
        alike = len(set(claim.asks)) == 1
        known = state.placement.known_capacity(claim.asks[0], claim.size) if alike else None
        if known is not None and classes is None and not state.placement.is_confined:
            self._shortage = claim.asks[0], known[0]
            return self._for_gang(claim, known[1], known[0])
        if not alike:
            hardness = {ask: state.placement.hardness(ask) for ask in claim.asks}
            pairs.sort(key=lambda pair: hardness[pair[1]], reverse=True)
            order = start_order(state.placement.rule_sets, *zip(*pairs, strict=True))
            pairs = [pairs[place] for place in order]
        refusal, placed, ask = self._place_all(claim, pairs, classes)
        if refusal is None or refusal.reason is Reason.GPU_QUOTA_EXCEEDED:
            return refusal
        for nodes in state.placement.domains_to_try(claim.asks):
            with state.placement.confined(nodes):
                if self._place_all(claim, pairs, classes)[0] is None:
                    return None
        everywhere = classes is None and not state.placement.is_confined
        if alike and everywhere and refusal.reason is Reason.NO_NODE_FITS:
            state.placement.note_capacity(ask, placed, refusal)
        self._placed = placed
        self._shortage = ask, sum(each == ask for _, each in pairs[:placed])
        return self._for_gang(claim, refusal, placed)

    def _place_all(
        self, claim: Claim, pairs: list[tuple[Pod, Ask]], classes: list[str] | None
    ) -> tuple[Refusal | None, int, Ask]:
        """Assume a node for each pod, or for none; why not, after how many, for which ask."""
        state = self.state
        with state.speculating() as speculation:
            for placed, (pod, ask) in enumerate(pairs):
                node = state.placement.find(ask, classes if ask.by_class else None, pod.images)
                if isinstance(node, Refusal):
                    return node, placed, ask
                quota = state.tree.quota_of(pod) if claim.parts else claim.quota
                booking = self._booking(claim, pod, ask, quota, node)
                if isinstance(booking, Refusal):
                    return booking, placed, ask
                state.ledger.assume(pod.uid, booking)
            speculation.keep()
        return None, len(pairs), pairs[-1][1]

    def _place_one(
        self, claim: Claim, classes: list[str] | None, of_models: list[str] | None = None
    ) -> Refusal | None:
        """`_place` for a claim of one pod, without its overhead: most claims are of one pod.

        `of_models`: the classes to choose from, if cards that no min needs come first.
        """
        state, pod, ask = self.state, claim.pods[0], claim.asks[0]
        if classes is not None and not ask.by_class:
            classes = None
        node = state.placement.find(ask, classes, pod.images)
        if isinstance(node, Refusal):
            self._shortage, self._placed = (ask, 0), 0
            return node
        if of_models is not None:
            charge = ask.charge(state.nodes.known[node].charge_class)
            if not state.model_mins.spares(charge, claim.quota):
                spare = self._spare_classes(claim, of_models)
                node = (spare and state.placement.pick(ask, spare, pod.images)) or node
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
        booking = state.bookings.of_ask(ask, pod, quota, node)
        if booking.gpu is None:
            return booking
        refusal = gpu_refusal(state, claim, pod, booking.gpu)
        if refusal is None:
            return booking
        tried = {state.devices.kinds(booking.gpu)}
        for other in state.placement.alternatives(ask, node, pod.images):
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
