"""Everything that keeps a claim from starting: the first refusal in full, the others by name.

A trial stops at the first refusal. A user who mends only that meets the next one, so the message of
a waiting pod names all of them: every gate in every resource and at every max above the quota, and
the nodes. It also says what keeps the claim from preempting, where that is the cause: its
`preemptionPolicy`, or a disruption budget of its victims. Conditions, events and `simulate` all
have their words from here. It is asked when a refusal is reported, never while claims are tried.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from aliquot.engine.books.quota_tree import ROOT
from aliquot.engine.columns import Vector
from aliquot.engine.eviction_brake import BRAKED
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.reasons import Reason, Refusal
from aliquot.engine.policies.gates import gpu_refusals
from aliquot.engine.queue.claim import Claim
from aliquot.engine.reclaim.plan import Plan
from aliquot.engine.trial import Trial

SETTLED = {
    *(Reason.WAITING_FOR_VICTIMS, Reason.TERMINATING),
    *(Reason.RESERVED, Reason.RESERVED_FOR_OTHERS),
    *BRAKED,
}
"""The claim waits for something of its own, or will never start: nothing else refuses it."""
_MOST_NAMED = 3
"""Pods that a message names before it counts the rest: two or three tell which workload it is."""


def in_full(trial: Trial, claim: Claim, refusal: Refusal) -> Refusal:
    """The refusal of a claim with all that a user should know of it in its message."""
    if refusal.reason is Reason.WAITING_FOR_VICTIMS:
        return replace(refusal, message=refusal.message + _broken_budgets(trial, claim))
    if refusal.reason in SETTLED:
        return refusal
    return trial.shared.in_full(claim, refusal, partial(_worked_out, trial, claim, refusal))


def _worked_out(trial: Trial, claim: Claim, refusal: Refusal) -> Refusal:
    """The same, for a claim that still has to be tried again."""
    with trial.asking(claim) as only_class:
        others = _others(claim, refusal, list(all_refusals(trial, claim, only_class)))
    message = refusal.message + _preemption_policy(trial, claim, refusal) + others
    return refusal if message == refusal.message else replace(refusal, message=message)


def _others(claim: Claim, first: Refusal, refusals: list[Refusal]) -> str:
    """`; also NoNodeFits (cpu), QuotaMaxExceeded (quota org, cpu)`: all but the first, by name."""
    named = {_key(claim, each): _name(claim, each) for each in refusals}
    named.pop(_key(claim, first), None)
    return f"; also {', '.join(dict.fromkeys(named.values()))}" if named else ""


def _key(claim: Claim, refusal: Refusal) -> tuple[object, ...]:
    return refusal.reason, refusal.quota or claim.quota, refusal.resource


def _name(claim: Claim, refusal: Refusal) -> str:
    """The reason, with the quota unless it is the claim's own, and the resource."""
    quota = f"quota {refusal.quota}" if refusal.quota not in (None, claim.quota) else ""
    about = ", ".join(word for word in (quota, refusal.resource or "") if word)
    return f"{refusal.reason} ({about})" if about else str(refusal.reason)


def all_refusals(trial: Trial, claim: Claim, only_class: str | None) -> Iterator[Refusal]:
    """What refuses the claim, in the order in which a trial meets it.

    Where the charge depends on the node class, a class that passes the gates will do: then only
    the nodes of such classes refuse the claim.
    """
    classes: list[str | None] = [only_class]
    if only_class is None:
        classes = [*trial.fit.charged_classes(claim)] or [None]
    by_class = {each: list(_gate_refusals(trial, claim, each)) for each in classes}
    allowed = [each for each, refusals in by_class.items() if not refusals]
    if not allowed:
        for refusals in by_class.values():
            yield from refusals
    only = [each for each in allowed or classes if each is not None] or None
    if only is None and trial.fit.surely_fits(claim):
        return
    on_nodes = trial.fit.place(claim, only)
    if on_nodes is not None:
        yield on_nodes


def _gate_refusals(trial: Trial, claim: Claim, node_class: str | None) -> Iterator[Refusal]:
    """What every gate says, asked in every resource by itself and at every quota above."""
    for part in claim.parts or (claim,):
        yield from gpu_refusals(trial.state, part)
        charge = part.charge(node_class)
        views = [_View(part, row, charge, node_class) for row, _ in charge or [(-1, 0)]]
        for gate in trial.fit.gates:
            for view in views:
                refusal = gate(view, node_class)
                while refusal is not None:
                    yield refusal
                    above = _above(trial, refusal)
                    refusal = gate(view.seen_from(above), node_class) if above else None


def _above(trial: Trial, refusal: Refusal) -> str | None:
    """The quota above the one whose max refuses the claim: its own max may refuse it as well."""
    tree = trial.state.tree
    if refusal.reason is not Reason.QUOTA_MAX_EXCEEDED or refusal.quota is None:
        return None
    above = tree.quotas[refusal.quota].parent
    return above if above in tree.quotas and above != ROOT else None


class _View(Claim):
    """A claim as a gate sees it that looks at one resource, or from one of the quotas above."""

    __slots__ = ("_charge", "_class", "_row")

    def __init__(self, claim: Claim, row: int, charge: Vector, node_class: str | None) -> None:
        # A dozen views are made of a claim: what no gate looks at is not worked out anew.
        self.pods, self.asks = claim.pods, claim.asks
        self.quota, self.held = claim.quota, claim.held
        self.others, self.parts, self.topology = (), (), None
        self.missing, self.surplus, self.joins, self.fingerprint = 0, False, False, 0
        self.uid, self.priority, self.key = claim.pods[0].uid, claim.priority, claim.key
        self._row, self._class = row, node_class
        self._charge = tuple(pair for pair in charge if pair[0] == row)

    def seen_from(self, quota: str) -> "_View":
        """The same claim as a quota above its own sees it."""
        found = _View(self, self._row, self._charge, self._class)
        found.quota = quota
        return found

    def charge(self, node_class: str | None) -> Vector:
        """What its quota is charged, of the one resource."""
        if node_class == self._class:
            return self._charge
        return tuple(pair for pair in super().charge(node_class) if pair[0] == self._row)


def _preemption_policy(trial: Trial, claim: Claim, refusal: Refusal) -> str:
    """Which pods would be evicted for the claim, were its `preemptionPolicy` not Never."""
    if claim.preempts or claim.missing or claim.pods[0].blocked:
        return ""
    preempting = trial.state.claims.of(
        tuple(replace(pod, preempts=True) for pod in claim.pods), claim.others, 0, claim.surplus
    )
    with trial.asking(preempting):
        plan = trial.reclaim(preempting, refusal)
    if not isinstance(plan, Plan) or not plan.victims:
        return ""
    never = next(pod for pod in claim.pods if not pod.preempts)
    whose = "its" if claim.size == 1 else f"{never.path}'s"
    victims = _listed([victim.pod for victim in plan.victims])
    return f"; it could start in place of {victims}, but {whose} preemptionPolicy is Never"


def _broken_budgets(trial: Trial, claim: Claim) -> str:
    """The victims of a nominated claim that disruption budgets keep from being evicted."""
    state, by_budget = trial.state, dict[str, list[Pod]]()
    for uid in trial.victims_of(claim) if state.budgets else ():
        victim = state.pods.get(uid)
        if victim is not None and not victim.terminating:
            for path in state.budgets.refusing(victim):
                by_budget.setdefault(path, []).append(victim)
    return "".join(
        f"; disruption budget {path} allows no eviction of {_listed(pods)} now"
        for path, pods in by_budget.items()
    )


def _listed(pods: list[Pod]) -> str:
    """The paths of the first pods, and how many more there are."""
    named = ", ".join(pod.path for pod in pods[:_MOST_NAMED])
    more = len(pods) - _MOST_NAMED
    return f"{named} and {more} more" if more > 0 else named
