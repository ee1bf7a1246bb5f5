"""Extended resources, such as GPUs: whole numbers that are never overcommitted.

An API server refuses a container that asks for more of one, or less, than its limit. `validate`,
the webhook and the embedded API server have the rule from here.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from aliquot.engine import quantity
from aliquot.errors import QuantityError


def is_extended(name: str) -> bool:
    """Is it a resource of a domain other than Kubernetes' own?"""
    domain, slash, _ = name.partition("/")
    return bool(slash) and not domain.endswith("kubernetes.io")


def unlike_limits(requests: Mapping[str, Any], limits: Mapping[str, Any]) -> Iterator[str]:
    """The extended resources of which a container requests another amount than its limit.

    Amounts that cannot be read are left out: they are refused as such.
    """
    for name, asked in requests.items():
        if is_extended(name):
            try:
                same = name in limits and _nanos(asked) == _nanos(limits[name])
            except QuantityError:
                continue
            if not same:
                yield name


def _nanos(amount: Any) -> int:
    return quantity.parse(str(amount)).nanos
