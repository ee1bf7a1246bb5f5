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
        if name in amounts:
            raise manifest.error(where, f"is {name} once more, in its other spelling")
        amounts[name] = amount
        in_ones = "/" in resource and quantity.per_one(resource) == 1
        if in_ones and quantity.parse(str(value)).nanos % 10**9:
            raise manifest.error(where, f"{value} is not a whole number, as it must be here")
    return amounts


def read_one(value: object, resource: str, manifest: Manifest, where: str) -> int:
    """A single quantity as an amount of its resource."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise manifest.error(where, f"{value!r} is not a quantity, such as 2, 500m or 10Gi")
    try:
        exact = quantity.parse(str(value))
    except QuantityError as error:
        raise manifest.error(where, str(error)) from None
    if exact.nanos < 0:
        raise manifest.error(where, f"{value} is negative")
    return quantity.amount(resource, str(value))


def write(amounts: Mapping[str, int]) -> dict[str, str]:
    """Amounts as canonical quantities, by resource name."""
    return {name: quantity.text(name, amounts[name]) for name in sorted(amounts)}


def share_of(value: int | str, number: int, up: bool = True) -> int:
    """A number of pods, or a percentage (`25%`) of a number of them, rounded up or down."""
    if isinstance(value, int):
        return value
    hundredths = int(value.removesuffix("%")) * number
    return -(-hundredths // 100) if up else hundredths // 100
