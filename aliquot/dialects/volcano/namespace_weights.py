"""Volcano's weights of namespaces, which it reads from `spec.hard` of ResourceQuotas.

A weight is a whole number of at least 1; any other value, or none, counts as 1. Of several
ResourceQuotas in a namespace, the highest weight counts.
"""

from collections.abc import Iterable, Iterator

from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import ResourceQuotaSpec, ResourceQuotaWire
from aliquot.engine import quantity
from aliquot.errors import QuantityError

KEY = "volcano.sh/namespace.weight"

_ONE = 10**9
"""1 in nanos, the unit of parsed quantities."""


def weights(objects: Iterable[Manifest]) -> dict[str, int]:
    """The weight of every namespace whose weight is not 1."""
    found: dict[str, int] = {}
    for each in objects:
        if isinstance(each.content, ResourceQuotaWire):
            weight = _written(each.content) or 1
            if weight > found.get(each.namespace, 1):
                found[each.namespace] = weight
    return found


def readable_namespace_weight(manifest: Manifest) -> Iterator[Finding]:
    """Warn of a weight such as 0 or 1.5, which counts as 1."""
    content = manifest.content
    assert isinstance(content, ResourceQuotaWire)
    hard = (content.spec or ResourceQuotaSpec()).hard or {}
    if KEY in hard and _written(content) is None:
        problem = f"{hard[KEY]!r} is no whole number of at least 1, and counts as 1"
        yield manifest.finding("warning", f"spec.hard[{KEY}]", problem)


def _written(content: ResourceQuotaWire) -> int | None:
    """The weight in a ResourceQuota; None if there is none, or it is no weight."""
    value = ((content.spec or ResourceQuotaSpec()).hard or {}).get(KEY)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        nanos = quantity.parse(str(value)).nanos
    except QuantityError:
        return None
    return min(nanos // _ONE, quantity.LIMIT) if nanos >= _ONE and nanos % _ONE == 0 else None
