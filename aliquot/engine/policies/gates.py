"""The gates that hold under every policy.

A pod starts in no quota that its namespace may not name; a closed quota starts no pods; a quota and
its ancestors use no more than their max; a namespace uses no more than its GPU quota.
"""

from collections.abc import Callable, Iterator

from aliquot.engine.columns import Vector
from aliquot.engine.gpus.quotas import DeviceRequest, Exceeded
from aliquot.engine.model.gpu import GpuAsk, Taken
from aliquot.engine.model.pod import Pod
from aliquot.engine.model.quantity import text
from aliquot.engine.model.reasons import (
    BORROWERS,
    ROOM,
    Reason,
    Refusal,
    Watch,
    ask_text,
    held_text,
)
from aliquot.engine.queue.claim import Claim
from aliquot.engine.state import State


def open_gate(state: State, claim: Claim, node_class: str | None) -> Refusal | None:
    """Refuses a claim with a pod that names a quota which is not open to its namespace."""
    for pod in claim.pods:
        if pod.quota is None or pod.quota == claim.quota:
            continue
        quota = state.tree.closed_to(pod)
        if quota is not None:
            words, watch = quota.refuse(pod.namespace), (Watch(quota=quota.name),)
            return Refusal(Reason.QUOTA_NOT_ALLOWED, words, quota.name, watch=watch)
    return None


def closed_gate(state: State, claim: Claim, node_class: str | None) -> Refusal | None:
    """Refuses a claim whose quota, or an ancestor of it, is closed."""
    if claim.quota is None:
        return None
    for slot in state.tree.closed(claim.quota):
        name = state.tree.slots.names[slot]
        words = f"queue {name} is closed: it lets nobody start any more"
        return Refusal(Reason.QUEUE_CLOSED, words, name, watch=(Watch(quota=name),))
    return None


def gpu_gate(state: State, claim: Claim, node_class: str | None) -> Refusal | None:
    """The claim must stay within the GPU quota of its namespace: its totals, its caps on one pod.

    Where an ask is a percentage of a device, the smallest device that would do counts.
    """
    quotas, namespace = state.gpu_quotas, claim.pods[0].namespace
    if namespace not in quotas.known:
        return None
    wishes = _wishes(state, claim)
    if not wishes or quotas.within(namespace, wishes, len(wishes)):
        return None
    return next(_gpu_quota_refusals(state, claim, wishes, namespace))


def gpu_refusals(state: State, claim: Claim) -> Iterator[Refusal]:
    """Every bound of its namespace's GPU quota that the claim would exceed."""
    if wishes := _wishes(state, claim):
        yield from _gpu_quota_refusals(state, claim, wishes, claim.pods[0].namespace)


def exceeded_gpu_bounds(state: State, claim: Claim) -> Iterator[Exceeded]:
    """The same bounds, with their numbers."""
    if state.gpu_quotas.known and (wishes := _wishes(state, claim)):
        yield from state.gpu_quotas.exceeded(claim.pods[0].namespace, wishes)


def _wishes(state: State, claim: Claim) -> list[DeviceRequest]:
    """What each pod of the claim asks for of the smallest devices that would do."""
    return [
        DeviceRequest(*state.devices.least_need(pod.shape.gpu), pod.shape.gpu.count)
        for pod in claim.pods
        if pod.shape.gpu is not None
    ]


def gpu_refusal(state: State, claim: Claim, pod: Pod, taken: Taken | None) -> Refusal | None:
    """`gpu_gate` for one pod of the claim, with the devices that were chosen for it."""
    ask = pod.shape.gpu
    if taken is None or ask is None or not state.gpu_quotas.known:
        return None
    if not ask.of_parts:
        return None  # the amounts are the same on every device: `gpu_gate` has checked them
    wishes = on_devices(state, ask, taken)
    return next(_gpu_quota_refusals(state, claim, wishes, pod.namespace, pods=1), None)


def on_devices(state: State, ask: GpuAsk, taken: Taken) -> list[DeviceRequest]:
    """What a pod asks for of each device that was chosen for it."""
    if not taken.devices:
        return [DeviceRequest(taken.request, taken.limit, 1)]
    return [DeviceRequest(*state.devices.need(ask, name), 1) for name in taken.devices]


def _gpu_quota_refusals(
    state: State,
    claim: Claim,
    wishes: list[DeviceRequest],
    namespace: str,
    pods: int | None = None,
) -> Iterator[Refusal]:
    for exceeded in state.gpu_quotas.exceeded(namespace, wishes, pods):
        others = (BORROWERS,) if exceeded.is_total else ()
        watch = (Watch(gpus=namespace), ROOM, *others)
        reason, bound = Reason.GPU_QUOTA_EXCEEDED, exceeded.bound
        yield Refusal(reason, str(exceeded), claim.quota, bound, watch)


def max_gate(state: State, claim: Claim, node_class: str | None) -> Refusal | None:
    """Used, plus nominations, plus the claim, must stay within max, up to the root.

    Only resources that the claim asks for count, and of those only the ones that max names.
    """
    if claim.quota is None:
        return None
    in_use, nominated = state.ledger.used, state.ledger.held
    charge, any_nominated = claim.charge(node_class), bool(state.ledger.holding)
    for slot, limits in state.tree.ceilings(claim.quota):
        for row, amount in charge:
            most = limits.get(row)
            if most is None:
                continue
            cell = row * in_use.width + slot
            used = in_use.cells[cell]
            held = nominated.cells[cell] if any_nominated else 0
            if used + held + amount > most:
                quota = state.tree.slots.names[slot]
                resource = state.resources.names[row]
                return Refusal(
                    Reason.QUOTA_MAX_EXCEEDED,
                    f"quota {quota}: max {text(resource, most)} {resource}, "
                    f"used {text(resource, used)}{held_text(resource, held)}, "
                    f"{ask_text(claim.size, resource, amount)}",
                    quota=quota,
                    resource=resource,
                    watch=(Watch(quota=quota),),
                )
    return None


def parts_are_owed(
    is_owed: Callable[[Claim, Vector], bool], claim: Claim, besides: Vector = ()
) -> bool:
    """Is each part of a claim owed, with those before it in the same quota charged?"""
    charged: dict[str | None, dict[int, int]] = {}
    for part in claim.parts:
        before = charged.setdefault(part.quota, dict(besides))
        if not is_owed(part, tuple(before.items())):
            return False
        for row, amount in part.charge(None):
            before[row] = before.get(row, 0) + amount
    return True
