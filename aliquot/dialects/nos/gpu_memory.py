"""GPU memory: how many GB cards and slices of cards come to.

A unit of quotas, not of nodes: nobody asks for it, it follows from what is asked for. So teams can
be guaranteed GB, and keep their guarantee however the cards are sliced. It has two spellings, one
for each group that nos has gone by; inside there is one.
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
"""MIG and MPS: the name of a slice ends in its GB."""


def canonical(resource: str) -> str:
    """The name that a resource goes by inside."""
    return GPU_MEMORY if resource in SPELLINGS else resource


def as_written(resource: str, *maps: Mapping[str, object] | None) -> str:
    """The spelling of a resource that the first of these maps has in which it stands."""
    spellings = SPELLINGS if resource == GPU_MEMORY else (resource,)
    written = (name for names in maps for name in spellings if name in (names or {}))
    return next(written, resource)


@lru_cache(maxsize=4096)
def slice_gb(resource: str) -> int:
    """The GB of one slice of this name; 0 for what is no slice."""
    found = (pattern.fullmatch(resource) for pattern in _SLICES)
    return next((int(match[1]) for match in found if match is not None), 0)


def is_gpu(resource: str) -> bool:
    """Is it a card, or a slice of one?"""
    return resource == CARD or slice_gb(resource) > 0


def gigabytes(amounts: Mapping[str, int], card_gb: int) -> int:
    """What these cards and slices come to, where a card has so many GB."""
    slices = sum(slice_gb(name) * amount for name, amount in amounts.items())
    return amounts.get(CARD, 0) * card_gb + slices


def peak(phases: Iterable[Mapping[str, int]], card_gb: int) -> int:
    """The most that is held at once: cards and slices of different phases do not add up."""
    return max(gigabytes(phase, card_gb) for phase in phases)
