"""GPU memory: the GB of cards and slices of cards, a resource of quotas.

No node has it and no pod requests it: it is computed from the cards and slices that a pod requests.
So a quota can guarantee GB however the cards are sliced. It has two spellings, one for each API
group of nos; the engine knows one.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from aliquot.engine import GPU_MEMORY

CARD = "nvidia.com/gpu"
SPELLINGS = (GPU_MEMORY, "nos.nebuly.com/gpu-memory")

_SLICES = (
    re.compile(r"nvidia\.com/mig-[0-9]{1,3}g\.([0-9]{1,6})gb(\.[-.a-z0-9]+)?"),
    re.compile(r"nvidia\.com/gpu-([0-9]{1,6})gb"),
)
"""Resource names of MIG and MPS slices, which hold their GB."""


def canonical(resource: str) -> str:
    """The engine's name of a resource."""
    return GPU_MEMORY if resource in SPELLINGS else resource


def as_written(resource: str, *maps: Mapping[str, object] | None) -> str:
    """The spelling of a resource in the first of these maps that holds it."""
    spellings = SPELLINGS if resource == GPU_MEMORY else (resource,)
    written = (name for names in maps for name in spellings if name in (names or {}))
    return next(written, resource)


@lru_cache(maxsize=4096)
def slice_gb(resource: str) -> int:
    """The GB of one slice of this resource name; 0 if it is no slice."""
    found = (pattern.fullmatch(resource) for pattern in _SLICES)
    return next((int(match[1]) for match in found if match is not None), 0)


def is_gpu(resource: str) -> bool:
    """Is the resource a card, or a slice of one?"""
    return resource == CARD or slice_gb(resource) > 0


def gigabytes(amounts: Mapping[str, int], card_gb: int) -> int:
    """The GB of these cards and slices, where a card has `card_gb`."""
    slices = sum(slice_gb(name) * amount for name, amount in amounts.items())
    return amounts.get(CARD, 0) * card_gb + slices


def peak(phases: Iterable[Mapping[str, int]], card_gb: int) -> int:
    """The most GB that a pod holds at once, in any of its phases."""
    return max(gigabytes(phase, card_gb) for phase in phases)
