"""What a write must be seen together with: all that a rule may ask for, and no more of it.

Rules look at all objects they are given. A cluster has tens of thousands, of which one write
concerns a few: which ones follows from what the rules about its kind look at, and is decided here
and nowhere else.
"""

from collections.abc import Iterable, Iterator

from aliquot.dialects.core.manifest import KEP9_GROUPS, Key, Manifest, key
from aliquot.dialects.core.pod_templates import template_views
from aliquot.dialects.kep9 import quotas
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.dialects.tensor_fusion import quotas as gpu_quotas
from aliquot.dialects.volcano import queues
from aliquot.errors import InputError
from aliquot.kube.webhook.cache import SHARES, Cache
from aliquot.kube.webhook.index import Word
from aliquot.mirror.group_membership import group_of, group_ref


def surroundings(live: Cache, old: Manifest | None, new: Manifest | None) -> dict[Key, Manifest]:
    """The objects that a write is judged among, without the one that is written."""
    subject = new or old
    assert subject is not None
    found: dict[Key, Manifest] = {}
    for each in _around(live, old, new):
        if each.key != subject.key:
            found[each.key] = each
        elif each.group != subject.group:
            found[_another_name(each)] = each
    return found


def _around(live: Cache, old: Manifest | None, new: Manifest | None) -> Iterator[Manifest]:
    subject = new or old
    assert subject is not None
    yield from live.index.find(("PriorityClass", ""))
    if subject.kind in SHARES:
        yield from live.shares.values()
    if subject.kind == queues.KIND:
        yield from _with_ties(live, _pods_of_queues(live, old, new))
    elif subject.kind in quotas.KINDS:
        yield from _hard_limits(live, subject)
        yield from _pods_of_quota(live, old, new)
    elif subject.kind == gpu_quotas.KIND:
        yield from live.index.find((gpu_quotas.KIND, subject.namespace))
    else:
        yield from _with_ties(live, [subject])


def _hard_limits(live: Cache, subject: Manifest) -> Iterator[Manifest]:
    """The ResourceQuotas of the namespaces that a quota covers."""
    try:
        covered = set(quotas.namespaces(subject))
    except InputError:
        covered = set()
    return live.index.find(*(("ResourceQuota", each) for each in {*covered, subject.namespace}))


def _pods_of_quota(live: Cache, old: Manifest | None, new: Manifest | None) -> Iterator[Manifest]:
    """Pods bear on a quota that goes, or that is to hold quotas instead of them."""
    if old is None or old.group not in KEP9_GROUPS:
        return
    words: list[Word] = [("quota", old.name)]
    if new is not None:
        if not _becomes_parent(old, new):
            return
        known = live.quota_index.quotas.get(quotas.quota_name(old))
        words += [("namespace", each) for each in sorted(known.namespaces if known else ())]
    yield from live.index.find(*words)


def _becomes_parent(old: Manifest, new: Manifest) -> bool:
    try:
        return koordinator.keys(new).is_parent and not koordinator.keys(old).is_parent
    except InputError:
        return False


def _pods_of_queues(live: Cache, old: Manifest | None, new: Manifest | None) -> Iterator[Manifest]:
    """Pods bear on a queue that goes, and on one that gets a queue below it."""
    if new is None:
        assert old is not None
        queue: str | None = old.name
    else:
        queue = queues.parent(new)
        if old is not None and queues.parent(old) == queue:
            return
    if queue is None:
        return
    groups = live.index.find(("queue of PodGroup", queue))
    spaces = live.index.find(("queue of Namespace", queue))
    words: list[Word] = [("queue", queue)]
    words += [("gang", f"{each.namespace}/{each.name}") for each in groups]
    words += [("namespace", each.name) for each in spaces]
    yield from live.index.find(*words)


def _with_ties(live: Cache, subjects: Iterable[Manifest]) -> Iterator[Manifest]:
    """Objects, with the gangs and namespaces that decide which queue they are in."""
    for each in subjects:
        space = live.space(each.namespace)
        if space is not None:
            yield space
        try:
            said = [group_ref(view, each) for view in template_views(each)]
        except InputError:
            said = []
        groups = (group_of(one, each.namespace, live.objects) for one in said)
        yield from (group for group in groups if group is not None)
        yield each


def _another_name(manifest: Manifest) -> Key:
    """Two groups may have a kind in common; both objects are there, under one name."""
    return key(manifest.kind, manifest.namespace, f"{manifest.name} of {manifest.group}")
