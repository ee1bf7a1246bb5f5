"""Quantities of Kubernetes objects as the engine's integer amounts, and back; numbers of pods.

A value that is no quantity is refused with the field that holds it.
"""

from collections.abc import Mapping

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import Quantities
from aliquot.dialects.nos.gpu_memory import canonical
from aliquot.engine import quantity
from aliquot.errors import QuantityError


def read(quantities: Quantities | None, manifest: Manifest, field: str) -> dict[str, int]:
    """Amounts by resource: none negative, extended resources whole, GPU memory in one spelling."""
    amounts: dict[str, int] = {}
    for resource, value in (quantities or {}).items():
        where = f"{field}[{resource}]"
        name = canonical(resource)
        amount = read_one(value, name, manifest, where)
        if amount is None:
            continue
        if name in amounts:
            manifest.refuse(where, f"is {name} once more, in its other spelling")
        amounts[name] = amount
    return amounts


def read_one(value: object, resource: str, manifest: Manifest, where: str) -> int | None:
    """A single quantity as an amount of its resource; None if it is refused."""
    problem = _problem(value, resource)
    if problem is not None:
        manifest.refuse(where, problem)
        return None
    return quantity.amount(resource, str(value))


def _problem(value: object, resource: str) -> str | None:
    """What is wrong with a quantity: none negative, extended resources whole."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return f"{value!r} is not a quantity, such as 2, 500m or 10Gi"
    try:
        nanos = quantity.parse(str(value)).nanos
    except QuantityError as error:
        return str(error)
    if nanos < 0:
        return f"{value} is negative"
    if "/" in resource and quantity.per_one(resource) == 1 and nanos % 10**9:
        return f"{value} is not a whole number, as it must be here"
    return None


def write(amounts: Mapping[str, int]) -> dict[str, str]:
    """Amounts as canonical quantities, by resource name."""
    return {name: quantity.text(name, amounts[name]) for name in sorted(amounts)}


def share_of(value: int | str, number: int, up: bool = True) -> int:
    """A number of pods, or a percentage (`25%`) of a number of them, rounded up or down."""
    if isinstance(value, int):
        return value
    hundredths = int(value.removesuffix("%")) * number
    return -(-hundredths // 100) if up else hundredths // 100
