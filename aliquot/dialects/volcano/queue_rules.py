"""Rules for Volcano Queues: one by itself, the tree, and a change of the tree; one function a rule.

All queues are checked together as they are after a change, as other quotas are. A rule yields
findings; it never raises and never changes anything.
"""

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterator, Mapping

from aliquot.dialects import quota_parents
from aliquot.dialects.core.findings import Finding, Severity, list_names
from aliquot.dialects.core.manifest import Key, Manifest
from aliquot.dialects.kep9.rules import gpu_memory_in_gigabytes
from aliquot.dialects.quota_index import QuotaIndex
from aliquot.dialects.volcano import queues
from aliquot.dialects.volcano.queues import KIND, ROOT, SPECIAL
from aliquot.engine import Amounts, Quota, quantity

_HIERARCHY = ("volcano.sh/hierarchy", "volcano.sh/hierarchy-weights")
_GUARANTEE, _DESERVED, _CAPABILITY = (
    f"spec.{word}" for word in ("guarantee.resource", "deserved", "capability")
)


def check_queue(manifest: Manifest) -> Iterator[Finding]:
    """Errors and warnings about one queue by itself."""
    yield from bounds_in_order(manifest)
    yield from root_without_bounds(manifest)
    yield from gpu_memory_in_gigabytes(manifest, queues.bounds(manifest))
    yield from ignored_fields(manifest)


def check_queues(quota_index: QuotaIndex, later: Container[str] = ()) -> Iterator[Finding]:
    """Errors and warnings about the tree of queues.

    `later` are the names of queues that a later change brings.
    """
    yield from parents_exist(quota_index, later)
    yield from no_cycles(quota_index)
    yield from children_within_parents(quota_index)


def check_queue_change(
    after: QuotaIndex, replaced: Mapping[Key, Manifest], deleted: Mapping[Key, str]
) -> Iterator[Finding]:
    """Queues that must not be deleted. `deleted` gives the place that deletes each object."""
    children: dict[str, list[str]] = {}
    for manifest, _ in after.queues:
        children.setdefault(queues.parent(manifest) or "", []).append(manifest.name)
    for key, place in deleted.items():
        kind, _, name = key
        old = replaced.get(key)
        if kind != KIND or old is None:
            continue
        if name in SPECIAL:
            yield Finding("error", place, old.title, "", "cannot be deleted")
        elif name in children:
            problem = f"cannot be deleted: it is the parent of {list_names(children[name])}"
            yield Finding("error", place, old.title, "", problem)


def bounds_in_order(manifest: Manifest) -> Iterator[Finding]:
    """Guarantee within deserved within capability.

    Only resources that both of two maps name are compared: a deserved share that is not written
    follows from the guarantee, and a capability that is not written is no bound.
    """
    one = queues.queue(manifest)
    yield from _within(manifest, (_GUARANTEE, one.min), (_DESERVED, one.deserved))
    yield from _within(manifest, (_GUARANTEE, one.min), (_CAPABILITY, one.max))
    yield from _within(manifest, (_DESERVED, one.deserved), (_CAPABILITY, one.max))


def _within(
    manifest: Manifest, lower: tuple[str, Amounts], higher: tuple[str, Amounts]
) -> Iterator[Finding]:
    ceiling = dict(higher[1])
    words = [each[0].split(".")[1] for each in (lower, higher)]
    for resource, low in lower[1]:
        high = ceiling.get(resource, low)
        if low > high:
            numbers = f"{words[0]} {quantity.text(resource, low)} is above {words[1]}"
            where = queues.field(manifest, lower[0], resource)
            yield manifest.finding("error", where, f"{numbers} {quantity.text(resource, high)}")


def root_without_bounds(manifest: Manifest) -> Iterator[Finding]:
    """The root queue is the cluster: it has what the nodes have, and no parent."""
    if manifest.name == ROOT:
        for where, written in queues.bounds(manifest).items():
            if written:
                yield manifest.finding("warning", where, "has no effect on this queue")
        if queues.spec(manifest).parent:
            yield manifest.finding("error", "spec.parent", "the root has no parent")


def ignored_fields(manifest: Manifest) -> Iterator[Finding]:
    """Warn of fields and annotations of Volcano's that have no effect here."""
    spec = queues.spec(manifest)
    ignored = {
        "spec.affinity": spec.affinity,
        "spec.extendClusters": spec.extend_clusters,
        "spec.dequeueStrategy": spec.dequeue_strategy not in (None, "", "traverse"),
    }
    for where, value in ignored.items():
        if value:
            yield manifest.finding("warning", where, "is not considered yet")
    for key in _HIERARCHY:
        if key in (manifest.metadata.annotations or {}):
            problem = "is not considered; a queue names the one above it in spec.parent"
            yield manifest.finding("warning", f"metadata.annotations[{key}]", problem)


def parents_exist(quota_index: QuotaIndex, later: Container[str]) -> Iterator[Finding]:
    """The parent of a queue must exist; a warning suffices if a later change brings it."""
    names = {manifest.name for manifest, _ in quota_index.queues}
    for manifest, _ in quota_index.queues:
        above = queues.parent(manifest)
        if above is None or above in names:
            continue
        if above in later:
            problem = f"parent queue {above} comes later; until then this one has no parent"
            yield manifest.finding("warning", "spec.parent", problem)
        else:
            yield manifest.finding("error", "spec.parent", f"there is no parent queue {above}")


def children_within_parents(quota_index: QuotaIndex) -> Iterator[Finding]:
    """Guarantees and deserved shares of children add up to at most their parent's.

    Only resources that the parent names are compared. A child's capability is at most its parent's.
    """
    yield from _sums_within(quota_index, "error", _GUARANTEE, lambda queue: queue.min)
    yield from _sums_within(quota_index, "warning", _DESERVED, lambda queue: queue.deserved)
    for manifest, one in quota_index.queues:
        ceiling = dict(quota_index.quotas[one.parent].max) if one.parent is not None else {}
        for resource, high in one.max:
            limit = ceiling.get(resource, high)
            if high > limit:
                numbers = (
                    f"{quantity.text(resource, high)} is above {quantity.text(resource, limit)}"
                )
                where = queues.field(manifest, _CAPABILITY, resource)
                yield manifest.finding("error", where, f"{numbers} of its parent {one.parent}")


def _sums_within(
    quota_index: QuotaIndex, severity: Severity, where: str, amounts: Callable[[Quota], Amounts]
) -> Iterator[Finding]:
    """Reported are the child with which the sum exceeds the parent's, and every one after it."""
    sums: Counter[tuple[str, str]] = Counter()
    for manifest, one in quota_index.queues:
        if one.parent is None:
            continue
        limits = dict(amounts(quota_index.quotas[one.parent]))
        for resource, amount in amounts(one):
            sums[one.parent, resource] = total = sums[one.parent, resource] + amount
            if amount and limits.get(resource, total) < total:
                whose = f"with this queue, the children of {one.parent}"
                have, limit = (
                    quantity.text(resource, total),
                    quantity.text(resource, limits[resource]),
                )
                problem = f"{whose} have a {where.split('.')[1]} of {have} together, above {limit}"
                yield manifest.finding(severity, queues.field(manifest, where, resource), problem)


def no_cycles(quota_index: QuotaIndex) -> Iterator[Finding]:
    """No queue is its own ancestor, or below more queues than are supported."""
    parents = {manifest.name: queues.parent(manifest) for manifest, _ in quota_index.queues}
    problems = quota_parents.problems(parents)
    for manifest, _ in quota_index.queues:
        if manifest.name in problems:
            yield manifest.finding("error", "spec.parent", problems[manifest.name])


def children_named(quota_index: QuotaIndex, name: str) -> Collection[str]:
    """The children of a queue."""
    return [each.name for _, each in quota_index.queues if each.parent == name]
