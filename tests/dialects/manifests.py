"""Objects made sure of, for tests of what the dialects make of them."""

from typing import Any

from aliquot.dialects.core import manifest
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import PodWire
from aliquot.dialects.core.pods import shape
from aliquot.dialects.nos.cards import Cards
from aliquot.engine.model.pod import GPU_MEMORY, Shape
from aliquot.json import Body
from tests.build.manifests import pod

COUNTED = Cards(counted=True)


def read(body: Body) -> Manifest:
    found = manifest.read(Document("test", body))
    assert found is not None
    return found


def shape_of(body: Body, cards: Cards = COUNTED) -> Shape:
    each = read(body)
    assert isinstance(each.content, PodWire)
    return shape(each.content.spec, each.content.status, each, cards)


def gigabytes(cards: Cards = COUNTED, **spec: Any) -> dict[str, int]:
    """What quotas are charged in GB, by node class; nothing if there are no charges."""
    charges = shape_of(pod("a/p", **spec), cards).charges
    return {name: dict(charge)[GPU_MEMORY] for name, charge in charges}


def container(name: str = "main", **limits: Any) -> Body:
    """A container with limits: `gpu`, `mig_1g_10gb`, `mps_8gb` are short for GPUs and slices."""
    return {"name": name, "resources": {"limits": {_long(k): v for k, v in limits.items()}}}


def sidecar(name: str, **limits: Any) -> Body:
    return {**container(name, **limits), "restartPolicy": "Always"}


def _long(key: str) -> str:
    if key == "gpu":
        return "nvidia.com/gpu"
    if key.startswith("mig_"):
        return "nvidia.com/mig-" + key.removeprefix("mig_").replace("_", ".")
    return "nvidia.com/gpu-" + key.removeprefix("mps_") if key.startswith("mps_") else key
