"""What pods request of single GPUs: by annotation, as cards, or as slices of cards.

All three become the engine's `GpuAsk`: an amount of each of a number of devices. Annotations count
where there are any; else cards and slices, at the peak of the pod's phases. A GB in the name of a
slice is 2**30 bytes, as in `nos.gpu_memory`.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from aliquot.dialects.nos.gpu_memory import CARD, gigabytes, peak, slice_gb
from aliquot.dialects.tensor_fusion.annotations import UNSET, GpuRequest, RequestAndLimit
from aliquot.dialects.tensor_fusion.quotas import NO_DEFAULTS, Defaults
from aliquot.engine import NO_GPU_AMOUNT, WHOLE_GPU, GpuAmount, GpuAsk

GIB = 2**30

_ALL = GpuAmount(WHOLE_GPU, WHOLE_GPU)
_MIG = re.compile(r"nvidia\.com/mig-([0-9]{1,3})g\..*")
_SEVENTHS = 7
"""A MIG slice `Ag.Bgb` has A sevenths of a card's compute."""


def gpu_ask(
    annotated: GpuRequest | None,
    phases: Sequence[Mapping[str, int]],
    card_gb: int,
    defaults: Defaults = NO_DEFAULTS,
) -> GpuAsk | None:
    """What a pod requests; None if it requests no GPUs.

    `annotated` is what its annotations request, `card_gb` the GB of a card by default.
    """
    return _by_cards(phases, card_gb) if annotated is None else _by_annotations(annotated, defaults)


def _by_annotations(annotated: GpuRequest, defaults: Defaults) -> GpuAsk:
    """By annotations; a pod that must be alone on its devices and states no amount has all of them."""
    low, high = defaults
    by_default = (low.tflops, high.tflops) if annotated.percent == UNSET else UNSET
    tflops = _fill(annotated.tflops, by_default)
    vram = _fill(annotated.vram, (low.vram, high.vram))
    percent = _fill(annotated.percent, UNSET)
    says_no_more = not any((*tflops, *vram, *percent))
    if annotated.dedicated or (annotated.whole and says_no_more):
        request = limit = NO_GPU_AMOUNT
        request_part = limit_part = _ALL
    else:
        request, limit = (GpuAmount(*pair) for pair in zip(tflops, vram, strict=True))
        request_part, limit_part = (GpuAmount(part) for part in percent)
    return GpuAsk(
        request=request,
        limit=limit,
        request_part=request_part,
        limit_part=limit_part,
        count=annotated.count,
        whole=annotated.whole,
        model=annotated.model,
        vendor=annotated.vendor,
        pool=annotated.pool,
        indices=annotated.indices,
    )


def _fill(written: RequestAndLimit, by_default: RequestAndLimit) -> tuple[int, int]:
    """Request and limit: as written, else by default, else equal to the other; request <= limit."""
    request = written[0] if written[0] is not None else by_default[0]
    limit = written[1] if written[1] is not None else by_default[1]
    request, limit = _or(request, limit), _or(limit, request)
    return (request, max(request, limit)) if written[1] is None else (min(request, limit), limit)


def _or(one: int | None, other: int | None) -> int:
    return (other or 0) if one is None else one


def _by_cards(phases: Sequence[Mapping[str, int]], card_gb: int) -> GpuAsk | None:
    """By cards and slices. A pod with both is given a device for each card.

    The slices are then added to these devices; slices of several sizes count as equal parts.
    """
    cards = max(phase.get(CARD, 0) for phase in phases)
    largest = max(phases, key=lambda phase: gigabytes(phase, card_gb))
    count = cards or sum(number for name, number in largest.items() if slice_gb(name))
    if not count:
        return None
    memory = (peak(phases, card_gb) - cards * card_gb) * GIB
    compute = max(_compute(phase) for phase in phases) - cards * WHOLE_GPU
    whole = WHOLE_GPU if cards else 0
    amount = GpuAmount(0, _each(memory, count))
    part = GpuAmount(whole + _each(compute, count), whole)
    return GpuAsk(
        request=amount,
        limit=amount,
        request_part=part,
        limit_part=part,
        count=count,
        whole=cards > 0,
        sliced=not cards,
    )


def _each(total: int, count: int) -> int:
    """A total divided by a count, rounded up."""
    return -(-total // count)


def _compute(phase: Mapping[str, int]) -> int:
    """The compute of cards and slices, in parts of a card; MPS slices have memory only."""
    sevenths = sum(_sevenths(name) * number for name, number in phase.items())
    return phase.get(CARD, 0) * WHOLE_GPU + _each(sevenths * WHOLE_GPU, _SEVENTHS)


@lru_cache(maxsize=4096)
def _sevenths(resource: str) -> int:
    match = _MIG.fullmatch(resource) if slice_gb(resource) else None
    return int(match[1]) if match is not None else 0
