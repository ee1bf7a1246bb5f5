"""The objects that a write is validated together with: all that its rules read, and no others.

Rules look at all objects they are given. A cluster has tens of thousands, of which one write
concerns a few. Which ones depends on the rules for its kind, and is decided only here: a rule that
reads more must get it from here.
"""

from collections.abc import Iterable, Iterator

from aliquot.dialects.core.manifest import KEP9_GROUPS, Key, Manifest, key
from aliquot.dialects.core.pod_templates import template_views
from aliquot.dialects.kep9 import quotas
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.dialects.tensor_fusion import quotas as gpu_quotas
from aliquot.dialects.volcano import queues
from aliquot.errors import InputError
from aliquot.kube.webhook.cache import QUOTA_KINDS, Cache
from aliquot.kube.webhook.index import IndexKey
from aliquot.mirror.group_membership import group_of, group_ref


def related_objects(
    cache: Cache, old: Manifest | None, new: Manifest | None
) -> dict[Key, Manifest]:
    """The objects to validate a write with, without the written one itself."""
    subject = new or old
    assert subject is not None
    found: dict[Key, Manifest] = {}
    for each in _related(cache, old, new):
        if each.key != subject.key:
            found[each.key] = each
        elif each.group != subject.group:
            found[_qualified_key(each)] = each
    return found


def _related(cache: Cache, old: Manifest | None, new: Manifest | None) -> Iterator[Manifest]:
    subject = new or old
    assert subject is not None
    yield from cache.index.find(("PriorityClass", ""))
    if subject.kind in QUOTA_KINDS:
        yield from cache.quotas
    if subject.kind == queues.KIND:
        yield from _with_groups(cache, _pods_of_queues(cache, old, new))
    elif subject.kind in quotas.KINDS:
        yield from _hard_limits(cache, subject)
        yield from _pods_of_quota(cache, old, new)
    elif subject.kind == gpu_quotas.KIND:
        yield from cache.index.find((gpu_quotas.KIND, subject.namespace))
    else:
        yield from _with_groups(cache, [subject])


def _hard_limits(cache: Cache, subject: Manifest) -> Iterator[Manifest]:
    """The ResourceQuotas of the namespaces that a quota covers."""
    try:
        covered = set(quotas.namespaces(subject))
    except InputError:
        covered = set()
    return cache.index.find(*(("ResourceQuota", each) for each in {*covered, subject.namespace}))


def _pods_of_quota(cache: Cache, old: Manifest | None, new: Manifest | None) -> Iterator[Manifest]:
    """The pods of a quota that is deleted, or that becomes a parent, which holds no pods."""
    if old is None or old.group not in KEP9_GROUPS:
        return
    index_keys: list[IndexKey] = [("quota", old.name)]
    if new is not None:
        if not _becomes_parent(old, new):
            return
        known = cache.quota_index.quotas.get(quotas.quota_name(old))
        index_keys += [("namespace", each) for each in sorted(known.namespaces if known else ())]
    yield from cache.index.find(*index_keys)


def _becomes_parent(old: Manifest, new: Manifest) -> bool:
    try:
        return koordinator.keys(new).is_parent and not koordinator.keys(old).is_parent
    except InputError:
        return False


def _pods_of_queues(cache: Cache, old: Manifest | None, new: Manifest | None) -> Iterator[Manifest]:
    """The pods of a queue that is deleted, or that gets a child queue."""
    if new is None:
        assert old is not None
        queue: str | None = old.name
    else:
        queue = queues.parent(new)
        if old is not None and queues.parent(old) == queue:
            return
    if queue is None:
        return
    groups = cache.index.find(("queue of PodGroup", queue))
    namespaces = cache.index.find(("queue of Namespace", queue))
    index_keys: list[IndexKey] = [("queue", queue)]
    index_keys += [("gang", f"{each.namespace}/{each.name}") for each in groups]
    index_keys += [("namespace", each.name) for each in namespaces]
    yield from cache.index.find(*index_keys)


def _with_groups(cache: Cache, subjects: Iterable[Manifest]) -> Iterator[Manifest]:
    """Objects, with the gangs and namespaces that decide which queue they belong to."""
    for each in subjects:
        namespace = cache.namespace(each.namespace)
        if namespace is not None:
            yield namespace
        try:
            refs = [group_ref(view, each) for view in template_views(each)]
        except InputError:
            refs = []
        groups = (group_of(ref, each.namespace, cache.objects) for ref in refs)
        yield from (group for group in groups if group is not None)
        yield each


def _qualified_key(manifest: Manifest) -> Key:
    """A key for an object of another API group that has the same kind and name."""
    return key(manifest.kind, manifest.namespace, f"{manifest.name} of {manifest.group}")
