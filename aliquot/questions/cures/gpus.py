"""What GPU quotas refuse: their bounds raised to what a pod needs, or less asked for.

What a pod asks of GPUs stands in its annotations, of each of its GPUs; totals count all of them.
"""

from collections.abc import Iterator

from aliquot.dialects.tensor_fusion.annotations import PREFIX
from aliquot.engine import Explanation, GateFigure, quantity
from aliquot.json import Body
from aliquot.questions.cures.changes import patch
from aliquot.questions.cures.proposal import Proposal
from aliquot.questions.cures.templates import Written, written_in
from aliquot.questions.moment import Moment


def proposals(moment: Moment, path: str, explanation: Explanation) -> Iterator[Proposal]:
    """Changes of a GPU quota, and of what a pod asks of GPUs, that might let the pod start."""
    record = moment.pod(path)
    assert record is not None
    gates = [gate for gate in explanation.gates if gate.gate == "GPUQuota" and not gate.passes]
    short = [each for gate in gates for each in gate.figures if each.beyond > 0]
    if not short:
        return
    yield from _raised(moment, record.pod.namespace, short)
    written = written_in(moment, record)
    if written is not None and len(explanation.pods) == 1:
        yield from _lowered(written, short)


_GPU_FIELDS = {
    **{
        f"{scope}.max.{unit}.{word}": (
            scope,
            f"{field}s" if scope == "total" else f"max{which}",
            unit,
        )
        for scope in ("total", "single")
        for unit in ("tflops", "vram")
        for word, field, which in (("request", "request", "Requests"), ("limit", "limit", "Limits"))
    },
    "total.max.workers.limit": ("total", "maxWorkers"),
    "single.max.gpuCount.limit": ("single", "maxGPUCount"),
}
"""Where each bound of a GPU quota, by its name in messages, stands in the spec."""


def _raised(moment: Moment, namespace: str, short: list[GateFigure]) -> Iterator[Proposal]:
    """Every bound of the GPU quota that the pod would exceed, raised to what it needs."""
    objects = moment.simulation.world.mirror.store.objects
    key = next((k for k in objects if k[0] == "GPUResourceQuota" and k[1] == namespace), None)
    if key is None:
        return
    spec: Body = {}
    words = []
    for figure in short:
        *above, last = _GPU_FIELDS[figure.bound]
        holder, needed = spec, figure.most + figure.beyond
        for step in above:
            holder = holder.setdefault(step, {})
        told = quantity.text(figure.resource, needed)
        holder[last] = needed if last.startswith("max") else told
        words.append(f"raise {figure.bound} of GPU quota {namespace}/{key[2]} to {told}")
    if spec:
        yield Proposal(" and ".join(words), (patch(key, {"spec": spec}),))


def _lowered(written: Written, short: list[GateFigure]) -> Iterator[Proposal]:
    """What the pod asks for of each GPU, lowered to what every bound leaves it."""
    annotations = written.annotations
    count = str(annotations.get(f"{PREFIX}gpu-count") or 1)
    lower: dict[str, str] = {}
    words = []
    for figure in short:
        scope, _, unit, word = (*figure.bound.split("."), "")[:4]
        key = f"{PREFIX}{unit}-{word}"
        if key not in annotations or not count.isdecimal():
            return
        left = figure.most if scope == "single" else (figure.most - figure.used) // int(count)
        before = quantity.amount(figure.resource, str(annotations[key]))
        known = lower.get(key)
        if known is not None:
            left = min(left, quantity.amount(figure.resource, known))
        if not 0 < left < before:
            return
        lower[key] = quantity.text(figure.resource, left)
        words.append(f"{unit}-{word} from {annotations[key]} to {lower[key]}")
    body = written.patched("metadata", "annotations", field=lower)
    told = ", ".join(dict.fromkeys(words))
    yield Proposal(f"lower its {told}", (patch(written.manifest.key, body),), lowers=True)
