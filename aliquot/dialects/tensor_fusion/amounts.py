"""Compute and memory of GPUs, as TensorFusion's objects write them."""

from aliquot.dialects.core import amounts
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.tensor_fusion.objects import GpuFigures
from aliquot.engine import GpuAmount, GpuBound, quantity

FIGURES = ("tflops", "vram")
"""Compute, exact to a milli-TFLOP, and memory in bytes."""


def bound(figures: GpuFigures | None, manifest: Manifest, field: str) -> GpuBound:
    """Both figures; None for what is not said."""
    said = figures or GpuFigures()
    return GpuBound(*(_one(getattr(said, word), word, manifest, field) for word in FIGURES))


def amount(figures: GpuFigures | None, manifest: Manifest, field: str) -> GpuAmount:
    """Both figures; nothing of what is not said."""
    tflops, vram = bound(figures, manifest, field)
    return GpuAmount(tflops or 0, vram or 0)


def write(amount: GpuAmount) -> dict[str, str]:
    """Both figures as canonical quantities."""
    return {word: quantity.text(word, getattr(amount, word)) for word in FIGURES}


def _one(value: object, word: str, manifest: Manifest, field: str) -> int | None:
    return None if value is None else amounts.read_one(value, word, manifest, f"{field}.{word}")
