"""Which errors a write causes: those that the rules find after it, but not before it."""

from collections.abc import Iterable

from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.kep9 import quotas
from aliquot.dialects.volcano import queues
from aliquot.engine import Amounts
from aliquot.errors import InputError


def new_errors(
    errors: Iterable[Finding], before: list[Finding], old: Manifest | None, new: Manifest | None
) -> list[Finding]:
    """The errors that are not among the findings before the write."""
    eased = _is_eased(old, new)
    return [each for each in errors if not _existed(each, before, eased)]


def _existed(finding: Finding, before: list[Finding], eased: bool) -> bool:
    """Is a finding not new? If the bounds are eased, nor is one on the same field as before."""
    if finding in before:
        return True
    where = (finding.severity, finding.object, finding.field)
    return eased and any((e.severity, e.object, e.field) == where for e in before)


def _is_eased(old: Manifest | None, new: Manifest | None) -> bool:
    """Does no bound of a quota increase, so that no sum over quotas can increase?"""
    if old is None or new is None or new.kind not in (*quotas.KINDS, queues.KIND):
        return False
    read = queues.queue if new.kind == queues.KIND else quotas.quota
    try:
        one, other = read(old), read(new)
    except InputError:
        return False
    pairs = ((one.min, other.min), (one.max, other.max), (one.deserved, other.deserved))
    return one.parent == other.parent and all(_within(more, less) for less, more in pairs)


def _within(lower: Amounts, higher: Amounts) -> bool:
    most = dict(higher)
    return all(amount <= most.get(resource, 0) for resource, amount in lower)
