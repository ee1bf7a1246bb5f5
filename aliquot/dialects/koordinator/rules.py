"""Rules for Koordinator's trees of quotas: one function a rule.

A rule checks all quotas together as they are after a change, so that one change may edit a parent
and its children. Only rules about what must never change compare the quotas before and after. A
rule yields findings; it never raises and never changes anything.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping

from aliquot.dialects import quota_parents
from aliquot.dialects.core import amounts
from aliquot.dialects.core.findings import Finding, list_names
from aliquot.dialects.core.gpu_models import is_model
from aliquot.dialects.core.manifest import KEP9_GROUPS, Key, Manifest
from aliquot.dialects.kep9.objects import QuotaWire
from aliquot.dialects.kep9.quotas import has_koordinator_keys, quota, spec
from aliquot.dialects.kep9.rules import bound_field, pointer
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.dialects.koordinator.keys import DEFAULT, IS_PARENT, ROOT, SPECIAL, SYSTEM
from aliquot.dialects.koordinator.tree_rules import Member, check_trees, no_move_between_trees
from aliquot.dialects.nos.objects import CompositeQuotaWire
from aliquot.dialects.quota_index import QuotaIndex
from aliquot.engine import Quota, quantity
from aliquot.errors import InputError

_HUGE = 2**60
"""Above this, a bound means none: Koordinator writes a fifth of the largest int64 (2**60.7)."""


def check_tree(quota_index: QuotaIndex, later: Container[str] = ()) -> Iterator[Finding]:
    """Errors and warnings about the tree of quotas.

    `later` are the names of quotas that a later change brings.
    """
    members = _members(quota_index)
    yield from one_quota_a_bare_name(members)
    yield from one_quota_a_listed_namespace(quota_index)
    yield from parents_are_parents(members, quota_index, later)
    yield from no_cycles(members, quota_index)
    yield from children_within_min(members)
    yield from max_named_by_parent(members)
    yield from built_in_quotas_stand_alone(members)
    yield from check_trees(members, quota_index)


def check_change(
    before: QuotaIndex,
    after: QuotaIndex,
    applied: Iterable[Manifest],
    replaced: Mapping[Key, Manifest],
    deleted: Mapping[Key, str],
) -> Iterator[Finding]:
    """Errors about what must not change from one state to the next.

    `replaced` are objects as they were before; `deleted` gives the place that deletes each object.
    """
    yield from built_in_quotas_stay(replaced, deleted)
    yield from built_in_quotas_are_not_edited(applied, replaced)
    yield from no_orphans(before, after, deleted)
    yield from no_move_between_trees(_members(before), _members(after))


def check_member(manifest: Manifest) -> Iterator[Finding]:
    """Errors and warnings about the Koordinator keys of one quota."""
    if manifest.group not in KEP9_GROUPS:
        return
    yield from unbounded_built_in_quotas(manifest)
    yield from true_or_false(manifest)
    yield from readable_weight(manifest)
    yield from min_named_in_max(manifest)
    yield from strict_keys(manifest)
    yield from readable_amounts(manifest)


def one_quota_a_bare_name(members: Iterable[Member]) -> Iterator[Finding]:
    """Names are unique across namespaces: pods and quotas refer to a quota by its bare name."""
    first: dict[str, Manifest] = {}
    for manifest, _, _ in members:
        other = first.setdefault(manifest.name, manifest)
        if other is not manifest and any(map(has_koordinator_keys, (manifest, other))):
            problem = f"names are unique across namespaces, and there is {pointer(other)}"
            yield manifest.finding("error", "metadata.name", problem)


def one_quota_a_listed_namespace(quota_index: QuotaIndex) -> Iterator[Finding]:
    """A namespace is listed by at most one quota."""
    first: dict[str, Manifest] = {}
    for manifest, bounds in quota_index.pairs:
        for namespace in sorted(_listed(manifest, bounds)):
            other = first.setdefault(namespace, manifest)
            if other is not manifest and manifest.group in KEP9_GROUPS:
                where = f"metadata.annotations[{koordinator.NAMESPACES}]"
                problem = f"namespace {namespace} is listed already by {pointer(other)}"
                yield manifest.finding("error", where, problem)


def _listed(manifest: Manifest, bounds: Quota) -> Collection[str]:
    if manifest.group in KEP9_GROUPS:
        return koordinator.keys(manifest).namespaces
    return bounds.namespaces if isinstance(manifest.content, CompositeQuotaWire) else ()


def parents_are_parents(
    members: Iterable[Member], quota_index: QuotaIndex, later: Container[str]
) -> Iterator[Finding]:
    """The parent of a quota must exist and be a parent; a warning if it comes later."""
    for manifest, _, keys in members:
        if not keys.parent or keys.parent == manifest.name:
            continue
        name = quota_index.names.get(keys.parent)
        where = _parent_field(manifest)
        if name is None and keys.parent in later:
            problem = f"parent quota {keys.parent} comes later; until then this one has no parent"
            yield manifest.finding("warning", where, problem)
        elif name is None and keys.parent not in quota_index.passed_over:
            yield manifest.finding("error", where, f"there is no parent quota {keys.parent}")
        elif name is not None and not quota_index.quotas[name].is_parent:
            problem = f'quota {name} is no parent: it lacks the label {IS_PARENT}: "true"'
            yield manifest.finding("error", where, problem)


def no_cycles(members: Iterable[Member], quota_index: QuotaIndex) -> Iterator[Finding]:
    """No quota is its own ancestor, or below more quotas than are supported."""
    parents = {
        bounds.name: quota_index.names.get(keys.parent)
        for _, bounds, keys in members
        if keys.parent
    }
    problems = quota_parents.problems(parents)
    for manifest, bounds, _ in members:
        if bounds.name in problems:
            yield manifest.finding("error", _parent_field(manifest), problems[bounds.name])


def children_within_min(members: Iterable[Member]) -> Iterator[Finding]:
    """The mins of a parent's children add up to at most its own min.

    Reported are the child with which the sum exceeds it, and every one after it that adds to it. A
    parent that does not name a model of cards lets its children name it.
    """
    members = list(members)
    forced = {bounds.name for _, bounds, keys in members if keys.forced}
    forced |= {bounds.parent for _, bounds, keys in members if keys.forced and bounds.parent}
    limits = {bounds.name: dict(bounds.min) for _, bounds, _ in members}
    sums: dict[tuple[str, str], tuple[int, list[str]]] = {}
    for manifest, bounds, _ in members:
        if bounds.parent is None or bounds.parent in forced:
            continue
        for resource, low in bounds.min:
            before, names = sums.get((bounds.parent, resource), (0, []))
            names = [*names, bounds.name] if low else names
            sums[bounds.parent, resource] = before + low, names
            have = limits[bounds.parent].get(resource, quantity.LIMIT if is_model(resource) else 0)
            if low and have < before + low:
                total, limit = quantity.text(resource, before + low), quantity.text(resource, have)
                problem = (
                    f"with this quota, the children of {bounds.parent} ({list_names(names)}) "
                    f"have a min of {total} together, above its own of {limit}"
                )
                yield manifest.finding("error", bound_field(manifest, "min", resource), problem)


def max_named_by_parent(members: Iterable[Member]) -> Iterator[Finding]:
    """A child's max names only resources of its parent's max, or models of cards.

    A tree shares no others.
    """
    members = list(members)
    ceilings = {bounds.name: dict(bounds.max) for _, bounds, _ in members}
    for manifest, bounds, _ in members:
        above = ceilings.get(bounds.parent or "", {})
        for resource, _ in bounds.max if above else ():
            if resource not in above and not is_model(resource):
                names = ", ".join(sorted(above))
                problem = f"max of its parent {bounds.parent} does not name it, but only {names}"
                yield manifest.finding("error", bound_field(manifest, "max", resource), problem)


def built_in_quotas_stand_alone(members: Iterable[Member]) -> Iterator[Finding]:
    """The system and the default quota, which hold pods of all namespaces, are in no tree."""
    for manifest, _, keys in members:
        if not _is_special(manifest, (SYSTEM, DEFAULT)):
            continue
        if keys.parent:
            problem = "belongs at the first level: it takes pods from everywhere"
            yield manifest.finding("error", _parent_field(manifest), problem)
        if keys.is_parent:
            problem = "cannot be a parent: it takes pods from everywhere"
            yield manifest.finding("error", f"metadata.labels[{IS_PARENT}]", problem)


def built_in_quotas_stay(
    replaced: Mapping[Key, Manifest], deleted: Mapping[Key, str]
) -> Iterator[Finding]:
    """Root, system and default quota cannot be deleted."""
    for key, place in deleted.items():
        manifest = replaced.get(key)
        if manifest is not None and _is_special(manifest, SPECIAL):
            yield Finding("error", place, manifest.title, "", "cannot be deleted")


def built_in_quotas_are_not_edited(
    applied: Iterable[Manifest], replaced: Mapping[Key, Manifest]
) -> Iterator[Finding]:
    """The bounds of the root and the system quota cannot change."""
    for manifest in applied:
        old = replaced.get(manifest.key)
        if old is None or not _is_special(manifest, (ROOT, SYSTEM)):
            continue
        if spec(old) != spec(manifest):
            yield manifest.finding("error", "spec", "cannot be changed")


def no_orphans(
    before: QuotaIndex, after: QuotaIndex, deleted: Mapping[Key, str]
) -> Iterator[Finding]:
    """A parent with children cannot be deleted."""
    children: dict[str, list[str]] = {}
    for _, bounds, keys in _members(after):
        if keys.parent and keys.parent not in after.names:
            children.setdefault(keys.parent, []).append(bounds.name)
    for manifest, _ in before.pairs:
        place, below = deleted.get(manifest.key), children.get(manifest.name, [])
        if place is not None and below:
            problem = f"cannot be deleted: it is the parent of {list_names(below)}"
            yield Finding("error", place, manifest.title, "", problem)


def unbounded_built_in_quotas(manifest: Manifest) -> Iterator[Finding]:
    """Warn of bounds on the root or the system quota, which have no effect."""
    if _is_special(manifest, (ROOT, SYSTEM)):
        for word, bound in (("min", quota(manifest).min), ("max", quota(manifest).max)):
            huge = all(amount >= _HUGE for _, amount in bound)
            if bound and not huge:
                yield manifest.finding("warning", f"spec.{word}", "has no effect on this quota")


def true_or_false(manifest: Manifest) -> Iterator[Finding]:
    """Warn of a flag that is neither true nor false, such as `yes`, which counts as its default."""
    labels = manifest.metadata.labels or {}
    for key in koordinator.FLAGS:
        value = koordinator.flag_text(labels, key)
        if value not in ("", "true", "false"):
            counts = "true" if key == koordinator.LEND else "false"
            problem = f"{value!r} is neither true nor false, and counts as {counts}"
            yield manifest.finding("warning", f"metadata.labels[{key}]", problem)


def readable_weight(manifest: Manifest) -> Iterator[Finding]:
    """Warn of a shared weight that cannot be read: max is the weight then."""
    problem = koordinator.weight_problem(manifest)
    if problem is not None:
        where = f"metadata.annotations[{koordinator.WEIGHT}]"
        yield manifest.finding("warning", where, f"{problem}; max is the weight instead")


def readable_amounts(manifest: Manifest) -> Iterator[Finding]:
    """Warn of a limit of admission and a tree's total that cannot be read.

    A negative amount is an error.
    """
    try:
        limit, problem = (
            koordinator.admission_problem(manifest),
            koordinator.total_problem(manifest),
        )
    except InputError as error:
        yield manifest.finding("error", error.field, error.problem)
        return
    if limit is not None:
        where = f"metadata.annotations[{koordinator.ADMISSION}]"
        yield manifest.finding("warning", where, f"{limit}; max is the limit instead")
    if problem is not None and koordinator.keys(manifest).is_root:
        where = f"metadata.annotations[{koordinator.TOTAL}]"
        yield manifest.finding("warning", where, f"{problem}; it is as if it were not written")


def min_named_in_max(manifest: Manifest) -> Iterator[Finding]:
    """Min names only resources of max: a tree shares no others, but models of cards."""
    bounds = quota(manifest)
    if not has_koordinator_keys(manifest) or not bounds.max or _is_special(manifest, SPECIAL):
        return
    ceiling = dict(bounds.max)
    for resource, _ in bounds.min:
        if resource not in ceiling and not is_model(resource):
            problem = f"max does not name it, but only {', '.join(sorted(ceiling))}"
            yield manifest.finding("error", bound_field(manifest, "min", resource), problem)


def strict_keys(manifest: Manifest) -> Iterator[Finding]:
    """For resources under strict check, max must not be below what is used."""
    names = koordinator.keys(manifest).strict
    content = manifest.content
    if not names or not isinstance(content, QuotaWire):
        return
    written = (content.status or {}).get("used")
    try:
        used = amounts.read(written if isinstance(written, dict) else {}, manifest, "status.used")
    except InputError as error:
        yield manifest.finding("error", error.field, error.problem)
        return
    ceiling = dict(quota(manifest).max)
    for resource in names:
        if resource not in ceiling:
            where = f"metadata.annotations[{koordinator.STRICT}]"
            yield manifest.finding("error", where, f"{resource} is not in max")
        elif used.get(resource, 0) > ceiling[resource]:
            numbers = f"max {quantity.text(resource, ceiling[resource])} is below"
            problem = (
                f"{numbers} used {quantity.text(resource, used[resource])}, and is to be checked"
            )
            yield manifest.finding("error", bound_field(manifest, "max", resource), problem)


def _members(quota_index: QuotaIndex) -> list[Member]:
    return [
        (manifest, bounds, koordinator.keys(manifest))
        for manifest, bounds in quota_index.pairs
        if manifest.group in KEP9_GROUPS
    ]


def _is_special(manifest: Manifest, names: Container[str]) -> bool:
    return manifest.group in KEP9_GROUPS and manifest.name in names


def _parent_field(manifest: Manifest) -> str:
    labels = manifest.metadata.labels or {}
    return f"metadata.labels[{next(key for key in koordinator.PARENT if key in labels)}]"
