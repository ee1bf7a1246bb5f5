"""Compute and memory of GPUs as TensorFusion's objects write them, to the engine's and back.

Apart because requests, bounds and statuses of GPUs all use it.
"""

from aliquot.dialects.core import amounts
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.tensor_fusion.objects import GpuFigures
from aliquot.engine import GpuAmount, GpuBound, quantity

FIGURES = ("tflops", "vram")
"""Compute, exact to a milli-TFLOP, and memory in bytes."""


def bound(figures: GpuFigures | None, manifest: Manifest, field: str) -> GpuBound:
    """Both figures; None for one that is not written."""
    written = figures or GpuFigures()
    return GpuBound(*(_read(getattr(written, name), name, manifest, field) for name in FIGURES))


def amount(figures: GpuFigures | None, manifest: Manifest, field: str) -> GpuAmount:
    """Both figures; 0 for one that is not written."""
    tflops, vram = bound(figures, manifest, field)
    return GpuAmount(tflops or 0, vram or 0)


def write(amount: GpuAmount) -> dict[str, str]:
    """Both figures as canonical quantities."""
    return {name: quantity.text(name, getattr(amount, name)) for name in FIGURES}


def _read(value: object, name: str, manifest: Manifest, field: str) -> int | None:
    return None if value is None else amounts.read_one(value, name, manifest, f"{field}.{name}")
