"""What a write is to blame for: of all that is wrong afterwards, what was not wrong before."""

from collections.abc import Iterable

from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.kep9 import quotas
from aliquot.dialects.volcano import queues
from aliquot.engine import Amounts
from aliquot.errors import InputError
from aliquot.kube.webhook.cache import SHARES


def to_blame(
    errors: Iterable[Finding], before: list[Finding], old: Manifest | None, new: Manifest | None
) -> list[Finding]:
    """The errors that are new."""
    eased = _is_eased(old, new)
    return [each for each in errors if not _was_so(each, before, eased)]


def _was_so(finding: Finding, before: list[Finding], eased: bool) -> bool:
    """Was it wrong already? Where bounds are eased, less of the same is no news either."""
    if finding in before:
        return True
    where = (finding.object, finding.field)
    return eased and any((each.object, each.field) == where for each in before)


def _is_eased(old: Manifest | None, new: Manifest | None) -> bool:
    """Does a quota ask for no more than it did, so that no sum can be higher than it was?"""
    if old is None or new is None or new.kind not in SHARES:
        return False
    shown = queues.queue if new.kind == queues.KIND else quotas.quota
    try:
        one, other = shown(old), shown(new)
    except InputError:
        return False
    pairs = ((one.min, other.min), (one.max, other.max), (one.deserved, other.deserved))
    return one.parent == other.parent and all(_within(more, less) for less, more in pairs)


def _within(lower: Amounts, higher: Amounts) -> bool:
    most = dict(higher)
    return all(amount <= most.get(resource, 0) for resource, amount in lower)
