"""The devices of a node without GPU objects, derived from the number and model of its cards.

Apart from `gpus` because it needs no object of TensorFusion.
"""

import re
from collections.abc import Mapping

from aliquot.dialects.core.labels import to_text
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.nos.cards import MODEL_LABEL, Cards
from aliquot.dialects.nos.gpu_memory import CARD
from aliquot.dialects.tensor_fusion.gpus import POOL
from aliquot.dialects.tensor_fusion.models import tflops
from aliquot.engine import Device, GpuAmount, Node, quantity

MOST = 1024
"""The most cards of a node that are told apart: far more than any node has, so that a wrong number
in a node does not fill the memory."""

DOMAINS = "aliquot.dev/gpu-domains"
"""An annotation of a node: which of its cards are near each other, by index: `0-3,4-7`."""
NO_DOMAINS: Mapping[int, str] = {}
_RANGE = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")
_VENDOR = "NVIDIA"


def devices(node: Node, cards: Cards, domains: Mapping[int, str] = NO_DOMAINS) -> list[Device]:
    """The cards of a node, each named `node/index`; those of an unknown model have 0 TFLOPs.

    `domains` says by index which are near each other.
    """
    labels = dict(node.labels)
    capacity = GpuAmount(compute(labels), cards.memory(labels))
    count = min(dict(node.allocatable).get(CARD, 0), MOST)
    return [
        Device(
            name=f"{node.name}/{index}",
            node=node.name,
            capacity=capacity,
            model=labels.get(MODEL_LABEL, ""),
            vendor=_VENDOR,
            pool=labels.get(POOL, ""),
            index=index,
            domain=domains.get(index, ""),
        )
        for index in range(count)
    ]


def compute(labels: Mapping[str, str]) -> int:
    """The milli-TFLOPs of a card on a node with these labels; 0 if its model is not known."""
    known = tflops(labels.get(MODEL_LABEL, ""))
    return quantity.amount("tflops", known) if known else 0


def domains(manifest: Manifest) -> dict[int, str]:
    """Which cards of a node are near each other, by index, if its annotation says so."""
    written = to_text((manifest.metadata.annotations or {}).get(DOMAINS))
    found: dict[int, str] = {}
    for part in written.split(",") if written else ():
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if first > last or not found.keys().isdisjoint(range(first, last + 1)):
            problem = f"{written!r} is no list of ranges of cards such as 0-3,4-7, each once"
            manifest.refuse(f"metadata.annotations[{DOMAINS}]", problem)
            return {}
        found |= dict.fromkeys(range(first, last + 1), part.strip())
    return found
