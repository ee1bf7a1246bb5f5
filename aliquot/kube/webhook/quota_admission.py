"""Pods that are refused because their quota admits no more (see `koordinator.admission`).

Only pods of quotas with the annotation. A pod that was let in counts from that moment: for some
seconds by what is remembered here, until the watch shows it. Several replicas of the webhook do not
tell each other: what they let in at the same moment may be above the limit together, and waits for
the scheduler, which holds every pod to max.
"""

import time
from collections.abc import Iterator

from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.koordinator import admission
from aliquot.errors import InputError
from aliquot.kube.webhook.cache import Cache
from aliquot.kube.webhook.usage import owner_of, quota_of


def not_admitted(cache: Cache, old: Manifest | None, new: Manifest | None) -> Iterator[Finding]:
    """The error that a new pod's quota does not admit it, or the quota that it moves to."""
    if new is None or new.kind != "Pod":
        return
    limited = {bounds.name: (manifest, bounds) for manifest, bounds in cache.admitting}
    if not limited:
        return
    index = cache.quota_index
    try:
        owner, asks = owner_of(new), cache.usage.asks(new)
        before = quota_of(owner_of(old), index, cache.objects) if old is not None else None
    except InputError:
        return  # what is wrong with the pod is another rule's
    quota = quota_of(owner, index, cache.objects)
    if quota not in limited or quota == before:
        return
    now = time.monotonic()
    asked = cache.usage.asked_in(quota, index, cache.objects, now, besides=new.key)
    problem = admission.refusal(*limited[quota], asked, asks)
    if problem is not None:
        yield new.finding("error", "", problem)
    else:
        cache.usage.note_admitted(new.key, owner, asks, now)
