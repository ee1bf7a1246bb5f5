"""Every gate of a claim one by one: does it pass, with which numbers?

A trial stops at the first gate that refuses. A user who asks why a pod waits wants all of them: the
ones that pass with their numbers, too, for what changes next may close them. The refusals are those
of `refusals`, so that no gate says here what it does not say to the cycle.
"""

from collections.abc import Iterable, Iterator

from aliquot.engine.model.explanation import GateAnswer, GateFigure
from aliquot.engine.model.quantity import text
from aliquot.engine.model.reasons import Reason, Refusal, ask_text
from aliquot.engine.policies.gates import exceeded_gpu_bounds
from aliquot.engine.policies.shields import LASTING
from aliquot.engine.policies.usage import taken
from aliquot.engine.queue.claim import Claim
from aliquot.engine.report.refusals import all_refusals
from aliquot.engine.trial import Trial

GATES: dict[Reason, str] = {
    Reason.SCHEDULING_GATED: "SchedulingGates",
    Reason.TERMINATING: "Deletion",
    Reason.NOT_SUPPORTED: "Support",
    Reason.GANG_INCOMPLETE: "Gang",
    Reason.QUOTA_NOT_ALLOWED: "QuotaAccess",
    Reason.PARENT_QUOTA: "QuotaAccess",
    Reason.QUEUE_MISSING: "QuotaAccess",
    Reason.QUEUE_CLOSED: "QueueState",
    Reason.GPU_QUOTA_EXCEEDED: "GPUQuota",
    Reason.QUOTA_MAX_EXCEEDED: "Max",
    Reason.NON_PREEMPTIBLE_ABOVE_MIN: "NonPreemptible",
    Reason.BORROWING_EXHAUSTED: "Borrowing",
    Reason.RUNTIME_EXCEEDED: "Runtime",
    Reason.ANCESTOR_EXCEEDED: "Runtime",
    Reason.QUEUE_OVER_DESERVED: "Deserved",
    Reason.VOLUME_MISSING: "Volumes",
    Reason.WAITING_FOR_VOLUME: "Volumes",
    Reason.NO_NODE_FITS: "Nodes",
    Reason.TOPOLOGY_UNSATISFIED: "Nodes",
}
"""The gate that a reason to wait is the answer of. Holds of other claims, victims that are awaited
and the brake on evictions are no gates of the claim: they are the reason itself."""
_OTHER = "Holds"


def gate_of(reason: Reason) -> str:
    """The gate that refuses for this reason."""
    return GATES.get(reason, _OTHER)


def gates(trial: Trial, claim: Claim, refusal: Refusal | None) -> Iterator[GateAnswer]:
    """Each gate of the claim in the order of a trial; `refusal` is the trial's own."""
    with trial.asking(claim) as only_class:
        first = _before_gates(claim)
        blocked = first is not None
        node_class = only_class or _cheapest_class(trial, claim)
        figures = list(trial.figures(claim, node_class))
        figures += _max_figures(trial, claim, node_class)
        figures += _gpu_figures(trial, claim)
        found = list(all_refusals(trial, claim, only_class))  # books the claim where it fits
    by_gate: dict[str, list[Refusal]] = {}
    if refusal is not None and (blocked or refusal.reason not in GATES):
        by_gate[gate_of(refusal.reason)] = [refusal]
    for each in found:
        by_gate.setdefault(gate_of(each.reason), []).append(each)
    for gate in _order(claim, by_gate, figures, trial):
        refused = tuple(dict.fromkeys(by_gate.get(gate, ())))
        own = tuple(each for each in figures if _gate_of_figure(each) == gate)
        if refused:
            words = "; ".join(dict.fromkeys(each.message for each in refused))
            yield GateAnswer(gate, False, words, own, refused)
        else:
            yield GateAnswer(gate, True, _passed(trial, claim, gate, own), own)


def _cheapest_class(trial: Trial, claim: Claim) -> str | None:
    """The node class whose nodes charge the claim's quota least, where that depends on them."""

    def charged(node_class: str) -> int:
        return sum(amount for _, amount in claim.charge(node_class))

    return min(trial.fit.charged_classes(claim), key=charged, default=None)


def _before_gates(claim: Claim) -> Reason | None:
    """What keeps a claim from being tried at all."""
    pod = claim.pods[0]
    if claim.missing:
        return Reason.GANG_INCOMPLETE
    if pod.gated:
        return Reason.SCHEDULING_GATED
    if pod.unsupported:
        return Reason.NOT_SUPPORTED
    return Reason.TERMINATING if pod.terminating else None


def _gate_of_figure(figure: GateFigure) -> str:
    if figure.bound.startswith(("total.", "single.")):
        return "GPUQuota"
    return {
        "max": "Max",
        "runtime": "Runtime",
        "deserves": "Deserved",
        LASTING: "NonPreemptible",
    }.get(figure.bound, "Borrowing")


def _order(
    claim: Claim, refused: Iterable[str], figures: Iterable[GateFigure], trial: Trial
) -> list[str]:
    """The gates that the claim meets: those every claim has, those with figures or a refusal.

    Nodes are no gate of their own while no node will do for the lack of a volume claim.
    """
    met = {*refused, *map(_gate_of_figure, figures)}
    if "Volumes" not in met:
        met.add("Nodes")
    if claim.gang is not None:
        met.add("Gang")
    if claim.quota is not None:
        met |= {"QuotaAccess", "Max"}
    if trial.state.gpu_quotas.known.get(claim.pods[0].namespace) is not None:
        met.add("GPUQuota")
    if any(pod.rules.volumes for pod in claim.pods):
        met.add("Volumes")
    return [each for each in dict.fromkeys((*GATES.values(), _OTHER)) if each in met]


def _passed(trial: Trial, claim: Claim, gate: str, figures: tuple[GateFigure, ...]) -> str:
    """What is said of a gate that lets the claim pass."""
    if figures:
        return "; ".join(_words(claim, each) for each in figures)
    match gate:
        case "Nodes":
            return _nodes(trial, claim)
        case "Gang":
            return f"gang {claim.gang}: {claim.size} pods are there to start together"
        case "Max":
            return f"quota {claim.quota} has no max in what the pod asks for"
        case "QuotaAccess":
            return f"the pod counts for quota {claim.quota}"
        case "GPUQuota":
            return f"within the GPU quota of namespace {claim.pods[0].namespace}"
        case "Volumes":
            return "its claims are there"
    return "passes"


def _words(claim: Claim, figure: GateFigure) -> str:
    whose = "all quotas together" if figure.quota is None else f"quota {figure.quota}"
    most, used = text(figure.resource, figure.most), text(figure.resource, figure.used)
    asks = ask_text(claim.size, figure.resource, figure.asks)
    return f"{whose}: {figure.bound} {most} {figure.resource}, used {used}, {asks}"


def _nodes(trial: Trial, claim: Claim) -> str:
    placement = trial.state.placement
    fit = min(int((placement.judged(ask) == 0).sum()) for ask in claim.asks)
    return f"{fit}/{len(trial.state.nodes.known)} nodes fit"


def _max_figures(trial: Trial, claim: Claim, node_class: str | None) -> Iterator[GateFigure]:
    """The max of the claim's quota and of those above it, in what it asks for."""
    state = trial.state
    for part in claim.parts or (claim,):
        if part.quota is None:
            continue
        for slot, limits in state.tree.ceilings(part.quota):
            for row, amount in part.charge(node_class):
                if row in limits:
                    name, quota = state.resources.names[row], str(state.tree.slots.names[slot])
                    used = taken(state, row, slot)
                    yield GateFigure(quota, name, "max", limits[row], used, amount)


def _gpu_figures(trial: Trial, claim: Claim) -> Iterator[GateFigure]:
    """The bounds of its namespace's GPU quota that the claim would exceed."""
    for part in claim.parts or (claim,):
        namespace = part.pods[0].namespace
        for each in exceeded_gpu_bounds(trial.state, part):
            asks = each.requested
            yield GateFigure(namespace, each.unit, each.bound, each.limit, each.used, asks)
