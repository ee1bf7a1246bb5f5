"""Admission by quota: pods are refused when they are created, instead of waiting.

Only where a quota says so, by its annotation `admission`: it limits what all pods of the quota ask
for together, whether they run or wait. What it names counts if max names it as well; empty, max is
the limit. Without the annotation all pods are let in, and wait for the scheduler.
"""

from collections.abc import Mapping

from aliquot.dialects.core.manifest import KEP9_GROUPS, Manifest
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.engine import Quota, quantity


def limits(manifest: Manifest, bounds: Quota) -> Mapping[str, int] | None:
    """What the pods of a quota may ask for together, by resource; None if all are let in."""
    if manifest.group not in KEP9_GROUPS or manifest.name in koordinator.SPECIAL:
        return None
    stated = koordinator.admission_limit(manifest)
    if stated is None:
        return None
    most = dict(bounds.max)
    return {name: n for name, n in stated if name in most} if stated else most


def refusal(
    manifest: Manifest, bounds: Quota, asked: Mapping[str, int], asks: Mapping[str, int]
) -> str | None:
    """Why a pod that asks for so much is refused, where its quota's pods ask for this already."""
    most = limits(manifest, bounds) or {}
    for name, amount in sorted(asks.items()):
        if name in most and amount and asked.get(name, 0) + amount > most[name]:
            numbers = (most[name], asked.get(name, 0), amount)
            limit, before, more = (quantity.text(name, each) for each in numbers)
            return (
                f"quota {bounds.name} admits pods that ask for {limit} {name} together; those "
                f"there are ask for {before}, this one for {more}; ask for less, delete pods of "
                "the quota, or have its annotation admission raised"
            )
    return None
