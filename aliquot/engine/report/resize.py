"""In-place resize: would a running pod with another shape still be within its bounds on its node?

The pod's booking is set aside for the question, and the new shape is checked in its place against
the GPU quota of its namespace, its devices, the max of its quotas, and its node. A resize that came
past that question is counted all the same: `above_max` says which quota is above its max with it.
"""

from dataclasses import replace

from aliquot.engine.books.ledger import Stage
from aliquot.engine.model.pod import Pod, Shape
from aliquot.engine.model.quantity import text
from aliquot.engine.model.reasons import Reason, Refusal
from aliquot.engine.policies.gates import max_gate, on_devices
from aliquot.engine.state import State
from aliquot.errors import ArgumentError


def check(state: State, uid: str, shape: Shape) -> Refusal | None:
    """Why the pod may not be resized to this shape; None if it may."""
    pod, entry = replace(state.pods[uid], shape=shape), state.ledger.entries[uid]
    if entry.stage < Stage.ASSUMED:
        raise ArgumentError(f"pod {pod.path} does not run")
    devices = entry.booking.gpu.devices if entry.booking.gpu is not None else ()
    with state.speculating(asking=True) as speculation:
        speculation.set_aside([uid])
        claim = state.claims.of((pod,))
        return (
            _of_gpus(state, pod, devices)
            or _of_devices(state, pod, devices)
            or max_gate(state, claim, None)
            or _of_node(state, pod, str(entry.booking.node))
        )


def above_max(state: State, uid: str) -> str | None:
    """Which quota of a bound pod is above its max in what the pod is charged, in words."""
    entry = state.ledger.entries[uid]
    if entry.booking.quota is None or entry.stage is not Stage.COMMITTED:
        return None
    for slot, limits in state.tree.ceilings(entry.booking.quota):
        for row, amount in entry.booking.charge:
            used, most = state.ledger.used.get(row, slot), limits.get(row)
            if amount and most is not None and used > most:
                name = state.resources.names[row]
                return (
                    f"quota {state.tree.slots.names[slot]}: max {text(name, most)} {name}, "
                    f"used {text(name, used)}, this pod has {text(name, amount)}"
                )
    return None


def _of_gpus(state: State, pod: Pod, devices: tuple[str, ...]) -> Refusal | None:
    """The refusal of the GPU quota: its totals, and its caps on one pod."""
    ask = pod.shape.gpu
    if ask is None:
        return None
    wishes = on_devices(state, ask, state.devices.taken(ask, devices))
    exceeded = state.gpu_quotas.check(pod.namespace, wishes, pods=1)
    if exceeded is None:
        return None
    return Refusal(Reason.GPU_QUOTA_EXCEEDED, str(exceeded), resource=exceeded.bound)


def _of_devices(state: State, pod: Pod, devices: tuple[str, ...]) -> Refusal | None:
    """The refusal of a device of the pod that has too little left."""
    if pod.shape.gpu is None:
        return None
    wants = state.devices.taken(pod.shape.gpu, devices).amounts
    for name, amount in zip(devices, wants, strict=True):
        if name not in state.devices.known:
            continue
        left = state.devices.free(name)
        for unit, needs, has in zip(("tflops", "vram"), amount, left, strict=True):
            if needs > has:
                asks = f"asks {text(unit, needs)}"
                words = f"device {name} has {text(unit, has)} {unit} for it, {asks}"
                return Refusal(Reason.NO_NODE_FITS, words, resource=unit)
    return None


def _of_node(state: State, pod: Pod, node: str) -> Refusal | None:
    """The refusal of its node, if that has too little room left."""
    slot = state.nodes.slots[node]
    for row, amount in state.placement.shape_ask(pod.shape).room:
        has = int(state.placement.free_soon(row, state.leaving.room)[slot])
        if amount > has:
            name = state.resources.names[row]
            words = f"node {node} has {text(name, has)} {name} for it, asks {text(name, amount)}"
            return Refusal(Reason.NO_NODE_FITS, words, resource=name)
    return None
