"""Would a running pod that asks for more, or less, still be within its bounds, where it is?

A dry run: what it has now is left aside, and what it would have is judged in its place: what one
pod may have, what all of its namespace may, its quotas' max, its node, and its devices.
"""

from dataclasses import replace

from aliquot.engine.books.ledger import Stage
from aliquot.engine.model.pod import Pod, Shape
from aliquot.engine.model.quantity import text
from aliquot.engine.model.reasons import Reason, Refusal
from aliquot.engine.policies.gates import max_gate, on_devices
from aliquot.engine.state import State


def check(state: State, uid: str, shape: Shape) -> Refusal | None:
    """Why it may not, or None."""
    pod, entry = replace(state.pods[uid], shape=shape), state.ledger.entries[uid]
    if entry.stage < Stage.ASSUMED:
        raise ValueError(f"pod {pod.path} does not run")
    devices = entry.booking.gpu.devices if entry.booking.gpu is not None else ()
    with state.ledger.excluding([uid]):
        claim = state.claims.of((pod,))
        return (
            _of_gpus(state, pod, devices)
            or _of_devices(state, pod, devices)
            or max_gate(state, claim, None)
            or _of_node(state, pod, str(entry.booking.node))
        )


def _of_gpus(state: State, pod: Pod, devices: tuple[str, ...]) -> Refusal | None:
    """What its namespace may use, and each pod of it."""
    ask = pod.shape.gpu
    if ask is None:
        return None
    wishes = on_devices(state, ask, state.devices.taken(ask, devices))
    exceeded = state.gpu_quotas.check(pod.namespace, wishes, pods=1)
    if exceeded is None:
        return None
    return Refusal(Reason.GPU_QUOTA_EXCEEDED, str(exceeded), resource=exceeded.bound)


def _of_devices(state: State, pod: Pod, devices: tuple[str, ...]) -> Refusal | None:
    """The same devices must have enough for it."""
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
    """Its node must have room for it."""
    slot = state.nodes.slots[node]
    for row, amount in state.placement.ask(pod.shape).room:
        has = int(state.placement.free_soon(row, state.leaving.room)[slot])
        if amount > has:
            name = state.resources.names[row]
            words = f"node {node} has {text(name, has)} {name} for it, asks {text(name, amount)}"
            return Refusal(Reason.NO_NODE_FITS, words, resource=name)
    return None
