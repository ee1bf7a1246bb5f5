"""The devices of a node without GPU objects, derived from the number and model of its cards.

Apart from `gpus` because it needs no object of TensorFusion.
"""

from collections.abc import Mapping

from aliquot.dialects.nos.cards import MODEL_LABEL, Cards
from aliquot.dialects.nos.gpu_memory import CARD
from aliquot.dialects.tensor_fusion.gpus import POOL
from aliquot.dialects.tensor_fusion.models import tflops
from aliquot.engine import Device, GpuAmount, Node, quantity

MOST = 1024
"""The most cards of a node that are told apart: far more than any node has, so that a wrong number
in a node does not fill the memory."""

_VENDOR = "NVIDIA"


def devices(node: Node, cards: Cards) -> list[Device]:
    """The cards of a node, each named `node/index`; those of an unknown model have 0 TFLOPs."""
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
        )
        for index in range(count)
    ]


def compute(labels: Mapping[str, str]) -> int:
    """The milli-TFLOPs of a card on a node with these labels; 0 if its model is not known."""
    known = tflops(labels.get(MODEL_LABEL, ""))
    return quantity.amount("tflops", known) if known else 0
