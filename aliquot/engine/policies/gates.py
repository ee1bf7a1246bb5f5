"""The gates that hold under every policy.

A quota is open, and uses no more than its max; a namespace uses no more of GPUs than it may.
"""

from aliquot.engine.gpus.devices import Taken
from aliquot.engine.gpus.quotas import Wish
from aliquot.engine.model.gpu import GpuAsk
from aliquot.engine.model.objects import Pod
from aliquot.engine.model.quantity import text
from aliquot.engine.model.reasons import BORROWERS, ROOM, Reason, Refusal, Watch, asked, kept
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State


def closed_gate(state: State, claim: Claim, node_class: str | None) -> Refusal | None:
    """Neither the claim's quota nor any above it may be closed."""
    if claim.quota is None:
        return None
    for slot in state.tree.closed(claim.quota):
        name = state.tree.slots.names[slot]
        words = f"queue {name} is closed: it lets nobody start any more"
        return Refusal(Reason.QUEUE_CLOSED, words, name, watch=(Watch(quota=name),))
    return None


def gpu_gate(state: State, claim: Claim, node_class: str | None) -> Refusal | None:
    """What the pods of a namespace may use of GPUs, each and all together.

    Where that depends on the device, as on the smallest that would do.
    """
    if not state.gpu_quotas.known:
        return None
    wishes = [
        Wish(*state.devices.least(pod.shape.gpu), pod.shape.gpu.count)
        for pod in claim.pods
        if pod.shape.gpu is not None
    ]
    return _gpu_quota_refusal(state, claim, wishes) if wishes else None


def gpu_refusal(state: State, claim: Claim, pod: Pod, taken: Taken | None) -> Refusal | None:
    """The same for one pod of it, with the devices that were chosen."""
    ask = pod.shape.gpu
    if taken is None or ask is None or not state.gpu_quotas.known:
        return None
    if not any((*ask.request_part, *ask.limit_part)):
        return None  # it makes no difference which
    return _gpu_quota_refusal(state, claim, on_devices(state, ask, taken), pods=1)


def on_devices(state: State, ask: GpuAsk, taken: Taken) -> list[Wish]:
    """What a pod asks for of each of the devices that it gets."""
    if not taken.devices:
        return [Wish(taken.request, taken.limit, 1)]
    return [Wish(*state.devices.wants(ask, name), 1) for name in taken.devices]


def _gpu_quota_refusal(
    state: State, claim: Claim, wishes: list[Wish], pods: int | None = None
) -> Refusal | None:
    namespace = claim.pods[0].namespace
    exceeded = state.gpu_quotas.check(namespace, wishes, pods)
    if exceeded is None:
        return None
    others = (BORROWERS,) if exceeded.could_be_helped else ()
    watch = (Watch(gpus=namespace), ROOM, *others)
    reason, bound = Reason.GPU_QUOTA_EXCEEDED, exceeded.bound
    return Refusal(reason, str(exceeded), claim.quota, bound, watch)


def max_gate(state: State, claim: Claim, node_class: str | None) -> Refusal | None:
    """Used, plus what is held for others, plus the claim, must stay within max.

    Only resources that the claim asks for count, and of those only the ones that max names.
    """
    if claim.quota is None:
        return None
    in_use, kept_back = state.ledger.used, state.ledger.held
    charge, someone_holds = claim.charge(node_class), bool(state.ledger.holding)
    for slot, limits in state.tree.ceilings(claim.quota):
        for row, amount in charge:
            most = limits.get(row)
            if most is None:
                continue
            used = in_use.get(row, slot)
            held = kept_back.get(row, slot) if someone_holds else 0
            if used + held + amount > most:
                quota = state.tree.slots.names[slot]
                resource = state.resources.names[row]
                return Refusal(
                    Reason.QUOTA_MAX_EXCEEDED,
                    f"quota {quota}: max {text(resource, most)} {resource}, "
                    f"used {text(resource, used)}{kept(resource, held)}, "
                    f"{asked(claim.size, resource, amount)}",
                    quota=quota,
                    resource=resource,
                    watch=(Watch(quota=quota),),
                )
    return None
