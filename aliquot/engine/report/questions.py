"""What can be asked of an engine: figures, reasons, how a pod is booked. Answers change nothing.

Each answer is with the numbers of now: where shares may have moved since the last cycle, they are
worked out anew first, and trials are taken back. `Engine` inherits these methods; they read its
parts and never decide.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager

from aliquot.engine.books.ledger import Stage
from aliquot.engine.eviction_brake import EvictionBrake
from aliquot.engine.gang_claims import GangClaims
from aliquot.engine.holds.nominations import Nominations
from aliquot.engine.holds.reservation import Reservations
from aliquot.engine.model.checks import check, shown
from aliquot.engine.model.decisions import Evict
from aliquot.engine.model.explanation import Explanation
from aliquot.engine.model.pod import Pod, Shape, check_pod
from aliquot.engine.model.reasons import Refusal
from aliquot.engine.model.summaries import (
    BrakeSummary,
    Figures,
    GangSummary,
    GpuQuotaSummary,
    QueueSummary,
    QuotaSummary,
)
from aliquot.engine.policies.interface import Policy
from aliquot.engine.policies.over_quota import over_quota_pods
from aliquot.engine.queue.claim import Claim
from aliquot.engine.report import (
    audit,
    endings,
    gates,
    nodes,
    position,
    preemption,
    refusals,
    resize,
    tree_figures,
)
from aliquot.engine.report import gpu_quotas as gpu_report
from aliquot.engine.report.gang_admission import GangAdmission
from aliquot.engine.report.gangs import summarise_gang
from aliquot.engine.report.owed import owed
from aliquot.engine.report.quotas import summarise
from aliquot.engine.report.waiting_order import waiting_order
from aliquot.engine.state import State
from aliquot.engine.trial import Trial
from aliquot.errors import ArgumentError


class Questions:
    """The questions that an engine answers; it sets the parts they read."""

    policy: str
    _state: State
    _policy: Policy
    _nominations: Nominations
    _reservations: Reservations
    _brake: EvictionBrake
    _trial: Trial
    _gang_claims: GangClaims
    _admission: GangAdmission
    _now: int

    def summarise(self) -> list[QuotaSummary]:
        """The figures of every quota, by name."""
        self._policy.report.refresh()
        return self._policy.report.complete(list(summarise(self._state)))

    def quota_of(self, pod: Pod) -> str | None:
        """The quota that a pod belongs to, if any."""
        check_pod(pod)
        return self._state.tree.quota_of(pod)

    def over_quota_pods(self) -> set[str]:
        """The uids of all bound pods that are over their quota's min."""
        return over_quota_pods(self._state)

    def child_requests(self, summaries: Mapping[str, QuotaSummary]) -> dict[str, Figures]:
        """The request of each quota's own pods, plus its children's up to their max."""
        return tree_figures.child_requests(self._state, summaries)

    def guarantees(
        self, summaries: Mapping[str, QuotaSummary]
    ) -> tuple[dict[str, Figures], dict[str, Figures]]:
        """What each quota is sure of with what was given to it, and what is given away of that."""
        return tree_figures.guarantees(summaries)

    def not_preemptible(self) -> tuple[dict[str, Figures], dict[str, Figures]]:
        """What non-preemptible pods request, and use, by quota."""
        return tree_figures.not_preemptible(self._state)

    def violations(self, uids: Iterable[str], bound: audit.Bound) -> Iterator[str]:
        """Where the books are not what the cluster says; see `report.audit`."""
        return audit.violations(self._state, uids, bound)

    def queues(self) -> list[QueueSummary]:
        """The figures of every queue and its namespaces, by name; empty unless policy `queues`."""
        self._policy.report.refresh()
        return self._policy.report.queues(summarise(self._state))

    def brake(self, now: int | None = None) -> BrakeSummary:
        """How the brake on evictions stands now, or at the last cycle."""
        return self._brake.summarise(self._now if now is None else now)

    def gpu_quotas(self) -> list[GpuQuotaSummary]:
        """The figures of every GPU quota, by namespace."""
        return gpu_report.summarise(self._state)

    def owed(self, summaries: Mapping[str, QuotaSummary]) -> dict[str, Figures]:
        """What each quota is owed and does not have, in what its guarantee names.

        That is its min, or where the policy computes shares its runtime; see `report.owed`.
        """
        self._policy.report.refresh()
        by_min = preemption.SHARES[self.policy] == "min"
        named = {each.name: each.min if by_min else each.runtime for each in summaries.values()}
        return owed(self._state, self._policy, named)

    def passed_since(self) -> dict[str | None, int]:
        """Of each quota with waiting claims that were passed: when the first of them was.

        Passed by a claim behind it, or a gang that keeps room from its first refusal on.
        """
        return self._reservations.passed_since()

    def charged(self, uid: str) -> Figures:
        """What the quota of this pod is charged for it."""
        self._known_pod(uid)
        booking, names = self._state.ledger.entries[uid].booking, self._state.resources.names
        return {names[row]: amount for row, amount in booking.charge}

    def may_resize(self, uid: str, shape: Shape) -> Refusal | None:
        """Why a running pod could not be resized to this shape in place; None if it could."""
        self._known_pod(uid)
        check(shape, Shape, "shape")
        return resize.check(self._state, uid, shape)

    def above_max(self, uid: str) -> str | None:
        """Which quota of this bound pod is above its max, in words; None if none is."""
        self._known_pod(uid)
        return resize.above_max(self._state, uid)

    def node_count(self) -> int:
        """How many nodes there are."""
        return len(self._state.nodes.known)

    def pod_count(self) -> int:
        """How many pods wait, run or leave."""
        return len(self._state.pods)

    def waiting_pod(self, uid: str) -> Pod | None:
        """The pod with this uid, if it waits to start."""
        entry = self._state.ledger.entries.get(uid)
        waits = entry is not None and entry.stage < Stage.ASSUMED
        return self._state.pods.get(uid) if waits else None

    def booked_node(self, uid: str) -> str | None:
        """The node that a pod is bound, assumed or nominated to, if any."""
        entry = self._state.ledger.entries.get(uid)
        return entry.booking.node if entry is not None else None

    def nominated_node(self, uid: str) -> str | None:
        """The node that is nominated for this waiting pod, if any."""
        return self.booked_node(uid) if uid in self._state.ledger.holding else None

    def node_refusals(self, uid: str) -> dict[str, str]:
        """The nodes that refuse a waiting pod now, each with a plugin of kube-scheduler.

        The first of its plugins; the nodes that are not named could hold the pod.
        """
        pod = self._known_pod(uid)
        with self._without_hold(uid):
            return nodes.refusals(self._state, pod)

    def preferences(self, uid: str) -> dict[str, dict[str, int]]:
        """What a waiting pod prefers: of each node that could hold it, points by plugin, 0 to 100.

        Plugins that make no difference are left out.
        """
        pod = self._known_pod(uid)
        with self._without_hold(uid):
            return nodes.preferences(self._state, pod)

    @contextmanager
    def _without_hold(self, uid: str) -> Iterator[None]:
        """Answer as if nothing were held for this pod: it is not in its own way."""
        with self._state.speculating(asking=True) as speculation:
            if uid in self._state.ledger.holding:
                speculation.set_aside([uid])
            yield

    def is_wanted(self, eviction: Evict) -> bool:
        """Is this pod to leave, and does its claim, or another nominated one, still need it to?

        The pods of other quotas may have ended or been deleted since the eviction was decided.
        """
        uid = eviction.pod.uid
        if uid not in self._state.leaving:
            return False
        if eviction.claimant is None:
            return True
        self._policy.report.refresh()
        return any(self._trial.needs(claim, uid) for claim in self._claims_for(eviction))

    def is_refused_by_budgets(self, pod: Pod) -> bool:
        """Do disruption budgets not allow the eviction of this pod, which is decided?"""
        return bool(self._state.budgets.refusing(pod))

    def is_awaited(self, uid: str) -> bool:
        """Does a nominated claim wait for this victim to terminate?"""
        return self._nominations.is_awaited(uid)

    def is_owed(self, eviction: Evict) -> bool:
        """Does a claim wait for this victim that is within its min, runtime or deserved?"""
        return any(map(self._policy.gates.is_owed, self._claims_for(eviction)))

    def _claims_for(self, eviction: Evict) -> list[Claim]:
        """The waiting claims that an eviction is for: its own, and others nominated by now."""
        waiting, claimant = self._state.waiting, eviction.claimant
        claims = {each.uid: each for each in self._nominations.claims_awaiting(eviction.pod.uid)}
        if claimant is not None and claimant.uid in waiting:
            own = waiting.claim(claimant.uid)
            claims.setdefault(own.uid, own)
        return list(claims.values())

    def gangs(self) -> list[GangSummary]:
        """The phase of every gang, by name."""
        self._policy.report.refresh()
        claim_of = self._gang_claims.lookup()
        gangs = sorted(self._state.gangs.known.values(), key=lambda gang: gang.name)
        with self._state.speculating(asking=True):
            verdicts = self._admission.verdicts()
            return [summarise_gang(self._trial, gang, claim_of, verdicts) for gang in gangs]

    def why(self, uid: str, now: int | None = None) -> Refusal | None:
        """Why this pod cannot start now, with the numbers of now; None if it can, or runs.

        Times in the message are counted from `now`; without it, from the last cycle.
        """
        self._known_pod(uid)
        if self.waiting_pod(uid) is None:
            return None
        self._policy.report.refresh()
        claim = self._gang_claims.lookup()(uid)
        refusal = self._trial.why(claim, now)
        return refusal and refusals.in_full(self._trial, claim, refusal)

    def waiting_order(self) -> list[tuple[str, ...]]:
        """The uids of each waiting claim's pods, in the order in which claims would be tried."""
        self._policy.report.refresh()
        order = waiting_order(self._state, self._gang_claims.waiting())
        return [tuple(pod.uid for pod in claim.members) for claim in order]

    def explain(self, uid: str, now: int | None = None) -> Explanation:
        """Everything about a waiting pod: every gate, its place, what could make way for it."""
        self._known_pod(uid)
        if self.waiting_pod(uid) is None:
            raise ArgumentError(f"the pod with the uid {shown(uid)} does not wait")
        self._policy.report.refresh()
        claim = self._gang_claims.lookup()(uid)
        refusal = self._trial.why(claim, now)
        full = refusal and refusals.in_full(self._trial, claim, refusal)
        answers = tuple(gates.gates(self._trial, claim, refusal))
        victims, why = self._makes_way(claim, refusal)
        there = position.place(self._state, claim, self._gang_claims.waiting())
        return Explanation(full, answers, there, victims, why, claim.uids())

    def _makes_way(self, claim: Claim, refusal: Refusal | None) -> tuple[tuple[str, ...], str]:
        """The pods that make way for a claim, or why none does."""
        awaited = self._trial.victims_of(claim)
        if awaited:
            return tuple(awaited), ""
        if refusal is None:
            return self._trial.victims(claim), ""
        quotas = {each.name: each for each in self.summarise()}
        word = preemption.SHARES[self.policy]
        why = preemption.why_none(self._trial, self._policy, claim, refusal, quotas, word)
        return (), why

    def may_start(self, uid: str) -> bool:
        """Could a waiting pod start if it were tried now, before all others, if need be by victims?

        Idle capacity beyond its share counts, too: whether it gets it depends on the others.
        """
        self._known_pod(uid)
        if self.waiting_pod(uid) is None:
            return False
        self._policy.report.refresh()
        return self._trial.may_start(self._gang_claims.lookup()(uid))

    def endings(self, uid: str, groups: Iterable[Container[str]]) -> list[list[str]]:
        """Of each group of running pods, a least set that would let a waiting pod start by ending.

        Groups without such a set are left out.
        """
        self._known_pod(uid)
        if self.waiting_pod(uid) is None:
            return []
        self._policy.report.refresh()
        claim = self._gang_claims.lookup()(uid)
        return list(endings.sets(self._trial, self._policy, claim, groups))

    def most_free(self, uid: str) -> dict[str, int]:
        """The most that one node has free of each resource that a waiting pod asks for."""
        pod = self._known_pod(uid)
        with self._without_hold(uid):
            return nodes.most_free(self._state, pod)

    def roomy_nodes(self, uid: str) -> set[str]:
        """The nodes with enough free for a waiting pod, whether or not it may run there."""
        pod = self._known_pod(uid)
        with self._without_hold(uid):
            return nodes.roomy(self._state, pod)

    def kind_of_waiting(self, uid: str) -> object:
        """Waiting pods with the same kind have the same answer to `why`; None: none is like it."""
        return self._state.waiting.lane(uid)

    def _known_pod(self, uid: str) -> Pod:
        """The pod with this uid; one that the engine does not know is refused."""
        pod = self._state.pods.get(uid) if isinstance(uid, str) else None
        if pod is None:
            raise ArgumentError(f"there is no pod with the uid {shown(uid)}")
        return pod
