"""Kubernetes quantities, exactly.

A quantity is kept as a whole number of nanos, so that `0.1`, `100m` and `1.5Gi` are what they say
and nothing is ever rounded by a float. The engine counts in *amounts*: whole numbers of one unit
per resource (millicores and milli-TFLOPs; bytes, cards and everything else in ones), rounded up
where a quantity is finer than the unit, as the API server does.

Amounts are plain ints of any size here. Columns of int64 hold `min(amount, LIMIT)`, which never
wraps; a bound that large, such as `12E`, bounds nothing.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from aliquot.errors import QuantityError

LIMIT = 2**62
"""Where columns saturate: 4 EiB, larger than any real amount, and the sum of two fits an int64."""

Amounts = tuple[tuple[str, int], ...]
"""Resource and amount sorted by resource. In requests, zeros are left out."""

Form = Literal["decimal", "binary", "exponent"]

_NANO = 10**9
_PATTERN = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?P<suffix>[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?"
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_MOST_DIGITS = 400
"""The longest text, and the largest exponent, that is read: a float64 has 309 digits at most, so no
client writes more; without a bound one quantity could take all memory."""
_BYTES = ("memory", "storage", "ephemeral-storage", "hugepages-", "vram")
"""How the names of resources begin that are counted in bytes, and so may be shown as `2Gi`."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """An exact value in nanos, and the notation it was written in, which its text keeps."""

    nanos: int
    form: Form = "decimal"

    def __str__(self) -> str:
        if self.form == "binary" and self.nanos % _NANO == 0:
            return _binary_text(self.nanos // _NANO)
        return _decimal_text(self.nanos, exponent=self.form == "exponent")


@lru_cache(maxsize=65536)
def parse(text: str) -> Quantity:
    """Read a quantity in any notation Kubernetes accepts: `500m`, `1.5`, `2e3`, `12E`, `1Ki`."""
    match = _PATTERN.fullmatch(text)
    if match is None or not (match["whole"] or match["part"]):
        raise QuantityError(f"{text!r} is not a quantity, such as 2, 500m, 1.5 or 10Gi")
    suffix = match["suffix"] or ""
    part = match["part"] or ""
    if len(text) > _MOST_DIGITS:
        raise QuantityError(f"{text[:20]}... has more digits than a quantity can have")
    digits = int((match["whole"] or "") + part)
    shift = 9 - len(part)
    form: Form = "decimal"
    if suffix in _BINARY:
        digits <<= _BINARY[suffix]
        form = "binary"
    elif suffix in _DECIMAL:
        shift += _DECIMAL[suffix]
    else:
        exponent = int(suffix[1:]) if len(suffix) < 6 else _MOST_DIGITS + 1
        if abs(exponent) > _MOST_DIGITS:
            raise QuantityError(f"{text!r} is beyond what a quantity can be")
        shift += exponent
        form = "exponent"
    nanos = digits * 10**shift if shift >= 0 else -(-digits // 10**-shift)
    return Quantity(-nanos if match["sign"] == "-" else nanos, form)


def amount(resource: str, text: str) -> int:
    """Read a quantity as an amount of this resource, in its unit, rounded up."""
    return -(-parse(text).nanos // (_NANO // per_one(resource)))


def per_one(resource: str) -> int:
    """How many units of amount one whole of the resource has."""
    return 1000 if resource == "cpu" or resource.endswith("tflops") else 1


@lru_cache(maxsize=8192)
def text(resource: str, amount: int) -> str:
    """Write an amount as a canonical quantity: `1500m`, `8`, `2Gi`; bytes in the shorter form."""
    decimal = str(Quantity(amount * (_NANO // per_one(resource))))
    if resource.rpartition("/")[2].startswith(_BYTES):
        return min(str(Quantity(amount * _NANO, "binary")), decimal, key=len)
    return decimal


def add_amounts(*amounts: Amounts) -> Amounts:
    """Add up, resource by resource."""
    total: dict[str, int] = {}
    for part in amounts:
        for resource, value in part:
            total[resource] = total.get(resource, 0) + value
    return tuple(sorted(total.items()))


def _decimal_text(nanos: int, exponent: bool) -> str:
    if nanos == 0:
        return "0"
    power = -9
    while nanos % 1000 == 0 and (exponent or power < 18):
        nanos //= 1000
        power += 3
    if exponent:
        return f"{nanos}e{power}" if power else str(nanos)
    return f"{nanos}{_suffix(_DECIMAL, power)}"


def _binary_text(ones: int) -> str:
    power = 0
    while ones and ones % 1024 == 0 and power < 60:
        ones //= 1024
        power += 10
    if power == 0:
        return _decimal_text(ones * _NANO, exponent=False)
    return f"{ones}{_suffix(_BINARY, power)}"


def _suffix(suffixes: dict[str, int], power: int) -> str:
    return next(suffix for suffix, value in suffixes.items() if value == power)
