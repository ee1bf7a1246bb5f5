"""Rules for quotas, by themselves and together: one function a rule.

A rule yields findings; it never raises and never changes anything. It is given only objects that
could be read.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.gpu_models import LABELS, GpuModels, is_model
from aliquot.dialects.core.manifest import KEP9_GROUPS, Manifest
from aliquot.dialects.core.objects import Quantities
from aliquot.dialects.kep9.quotas import (
    LENDING_GROUP,
    hard,
    has_koordinator_keys,
    namespaces,
    quota,
    quota_name,
    spec,
)
from aliquot.dialects.koordinator.keys import NAMESPACES, SPECIAL, WEIGHT
from aliquot.dialects.nos.gpu_memory import SPELLINGS, as_written, is_gpu
from aliquot.dialects.quota_index import QuotaIndex
from aliquot.dialects.volcano import queues
from aliquot.engine import GPU_MEMORY, MODEL_PREFIX, Quota, quantity

Quotas = Sequence[tuple[Manifest, Quota]]
"""Each quota's object, and the engine's quota."""

_SLIPS = ("M", "G", "T", "Mi", "Gi", "Ti")
"""Suffixes of bytes, which a number of GB does not have."""


def check_quotas(
    quota_index: QuotaIndex,
    objects: Collection[Manifest],
    capacity: Mapping[str, int] | None,
    models: GpuModels,
) -> Iterator[Finding]:
    """Errors and warnings about all quotas together, with the other objects.

    Rules about parents and children are in `koordinator.rules`. Without `capacity`, what the nodes
    have together, guarantees are not compared with it.
    """
    quotas, with_queues = quota_index.pairs, (*quota_index.pairs, *quota_index.queues)
    yield from min_within_max(quotas)
    yield from one_quota_a_name(quotas)
    yield from one_quota_a_namespace(quota_index)
    yield from within_hard(quotas, objects)
    yield from one_unit_for_gpus(with_queues)
    yield from not_alone_in_its_group(quotas)
    yield from models_within_cards(with_queues, models)
    if capacity is not None:
        yield from models_exist(with_queues, capacity)
        alone = [each for each in with_queues if not _is_in_tree(each[1], quota_index)]
        yield from guarantees_within_capacity(alone, capacity)


def _is_in_tree(quota: Quota, quota_index: QuotaIndex) -> bool:
    """Is it in a tree that has nodes of its own?"""
    *_, top = quota_index.ancestry(quota.name)
    return bool(top.tree)


def check_quota(manifest: Manifest) -> Iterator[Finding]:
    """Warnings about one quota by itself."""
    yield from each_namespace_once(manifest)
    bounds = {"spec.min": spec(manifest).min, "spec.max": spec(manifest).max}
    yield from gpu_memory_in_gigabytes(manifest, bounds)


def min_within_max(quotas: Quotas) -> Iterator[Finding]:
    """Min must not be above max: the guarantee could never be used."""
    for manifest, bounds in quotas:
        ceiling = dict(bounds.max)
        written = dict(quota(manifest).min)
        for resource, low in bounds.min:
            if written.get(resource) != low:
                continue  # it follows from mins by model: see `models_within_cards`
            high = ceiling.get(resource, low)
            if low > high:
                bound = quantity.text(resource, high)
                problem = f"min {quantity.text(resource, low)} is above max {bound}"
                yield manifest.finding("error", bound_field(manifest, "min", resource), problem)


def one_quota_a_name(quotas: Quotas) -> Iterator[Finding]:
    """Two quotas in a namespace must not have one name, even if their kinds differ."""
    first: dict[str, Manifest] = {}
    for manifest, bounds in quotas:
        other = first.setdefault(bounds.name, manifest)
        if other is not manifest:
            problem = f"a quota goes by this name already: {pointer(other)}"
            yield manifest.finding("error", "metadata.name", problem)


def one_quota_a_namespace(quota_index: QuotaIndex) -> Iterator[Finding]:
    """A namespace has at most one quota, except in Koordinator's trees, where pods name theirs."""
    first: dict[str, Manifest] = {}
    for manifest, bounds in quota_index.pairs:
        single = manifest.group in KEP9_GROUPS
        if single and (quota_index.has_trees or manifest.name in SPECIAL):
            continue
        for namespace in [manifest.namespace] if single else sorted(bounds.namespaces):
            other = first.setdefault(namespace, manifest)
            if other is not manifest:
                yield _second_quota(manifest, namespace, other)


def _second_quota(manifest: Manifest, namespace: str, other: Manifest) -> Finding:
    if manifest.kind == "ElasticQuota":
        problem = f"the namespace has a quota already: {pointer(other)}"
        return manifest.finding("error", "metadata.namespace", problem)
    field = f"spec.namespaces[{namespaces(manifest).index(namespace)}]"
    problem = f"namespace {namespace} has a quota already: {pointer(other)}"
    return manifest.finding("error", field, problem)


def not_alone_in_its_group(quotas: Quotas) -> Iterator[Finding]:
    """Warn of a quota alone in its lending group, which lends to no other, perhaps misspelt."""
    members = Counter(bounds.group for _, bounds in quotas)
    for manifest, bounds in quotas:
        if bounds.group and members[bounds.group] == 1:
            problem = (
                f"no other quota is in the group {bounds.group!r}, so this one lends to nobody"
            )
            yield manifest.finding("warning", f"metadata.labels[{LENDING_GROUP}]", problem)


def each_namespace_once(manifest: Manifest) -> Iterator[Finding]:
    """Warn of a namespace that is listed twice: perhaps another one was meant.

    Of a CompositeElasticQuota, whose namespaces are a set, the schema refuses it.
    """
    written = namespaces(manifest) if manifest.group in KEP9_GROUPS else []
    for index, name in enumerate(written):
        if name in written[:index]:
            where = f"metadata.annotations[{NAMESPACES}]"
            yield manifest.finding("warning", where, f"{name} stands here already")


def gpu_memory_in_gigabytes(
    manifest: Manifest, bounds: Mapping[str, Quantities | None]
) -> Iterator[Finding]:
    """Warn of a suffix of bytes on GPU memory, which is in GB: `40Gi` is forty billion GB.

    `bounds` are quantities by the field that holds them.
    """
    for where, written in bounds.items():
        for name in SPELLINGS:
            value = str((written or {}).get(name, 0))
            if value.endswith(_SLIPS):
                count = quantity.parse(value).nanos // 10**9
                problem = f"{value} is {count} GB: GPU memory is a number of GB, such as 40"
                yield manifest.finding("warning", f"{where}[{name}]", problem)


def within_hard(quotas: Quotas, objects: Iterable[Manifest]) -> Iterator[Finding]:
    """Min and max are within what ResourceQuotas allow: pods beyond are refused at creation."""
    limits = _hard_limits(objects)
    for manifest, bounds in quotas:
        if has_koordinator_keys(manifest) or not bounds.namespaces:
            continue  # pods of any namespace may name it
        for word, bound in (("min", bounds.min), ("max", bounds.max)):
            for resource, amount in bound:
                of_each = [limits.get((name, resource)) for name in sorted(bounds.namespaces)]
                known = [limit for limit in of_each if limit is not None]
                most = sum(limit for limit, _ in known)
                if len(known) == len(of_each) and amount > most:
                    owners = _listed([owner for _, owner in known])
                    problem = (
                        f"{word} {quantity.text(resource, amount)} is above hard "
                        f"{quantity.text(resource, most)} of {owners}"
                    )
                    yield manifest.finding("error", bound_field(manifest, word, resource), problem)


def _hard_limits(objects: Iterable[Manifest]) -> dict[tuple[str, str], tuple[int, Manifest]]:
    """The lowest limit of each namespace and resource, and the ResourceQuota that sets it."""
    limits: dict[tuple[str, str], tuple[int, Manifest]] = {}
    for manifest in objects:
        if manifest.kind == "ResourceQuota":
            for resource, amount in hard(manifest).items():
                key = (manifest.namespace, resource)
                if key not in limits or amount < limits[key][0]:
                    limits[key] = (amount, manifest)
    return limits


def _listed(owners: Sequence[Manifest]) -> str:
    if len(owners) == 1:
        return f"ResourceQuota {owners[0].name}"
    return f"ResourceQuotas {', '.join(quota_name(each) for each in owners)} together"


def one_unit_for_gpus(quotas: Quotas) -> Iterator[Finding]:
    """Warn of quotas that guarantee GPUs in cards and in GB: a card may be guaranteed twice."""
    first: tuple[bool, str, Manifest] | None = None
    for manifest, bounds in quotas:
        guaranteed = (name for name, amount in bounds.min if amount)
        for name in guaranteed:
            in_gigabytes = name == GPU_MEMORY
            if not (in_gigabytes or is_gpu(name)):
                continue
            if first is None:
                first = (in_gigabytes, name, manifest)
            elif first[0] != in_gigabytes:
                problem = f"a card may be guaranteed twice, here and as {first[1]}"
                where = "" if first[2] is manifest else f" in {pointer(first[2])}"
                yield manifest.finding(
                    "warning", bound_field(manifest, "min", name), f"{problem}{where}"
                )


def models_within_cards(quotas: Quotas, models: GpuModels) -> Iterator[Finding]:
    """Mins by model, and their sum, must not be above the max of all cards; nor `deserved`."""
    for manifest, bounds in quotas:
        ceiling = dict(bounds.max)
        for word, amounts in (("min", bounds.min), ("deserved", bounds.deserved)):
            sums = Counter[str]()
            for resource, low in amounts:
                cards = models.cards_of(resource) if is_model(resource) else ""
                if cards not in ceiling:
                    continue
                sums[cards] += low
                if low and sums[cards] > ceiling[cards]:
                    most = quantity.text(cards, ceiling[cards])
                    all_of = "mins" if word == "min" else "deserved shares"
                    sum_of = f"with it, {all_of} by model add up to {sums[cards]}"
                    words = sum_of if sums[cards] > low else f"{word} {low}"
                    problem = f"{words}, above max {most} {cards}"
                    where = bound_field(manifest, word, resource)
                    yield manifest.finding("error", where, problem)


def models_exist(quotas: Quotas, capacity: Mapping[str, int]) -> Iterator[Finding]:
    """Warn of a model that no node has."""
    for manifest, bounds in quotas:
        for resource in dict.fromkeys(
            name
            for each in (bounds.min, bounds.deserved, bounds.max, bounds.weight)
            for name, _ in each
        ):
            if is_model(resource) and not capacity.get(resource):
                model = resource.removeprefix(MODEL_PREFIX)
                problem = f"no node has cards of the model {model}"
                labels = " nor ".join(LABELS.values())
                hint = f"neither {labels} says so, nor a value that gpu.models lists under {model}"
                where = model_field(manifest, resource)
                yield manifest.finding("warning", where, f"{problem}: {hint}")


def model_field(manifest: Manifest, resource: str) -> str:
    """The first field of a quota that names a resource."""
    if manifest.kind == queues.KIND:
        fields = (where for where, each in queues.bounds(manifest).items() if resource in each)
        return f"{next(fields, 'spec')}[{resource}]"
    bounds = spec(manifest)
    for word in ("min", "max"):
        if resource in (getattr(bounds, word) or {}):
            return f"spec.{word}[{resource}]"
    return f"metadata.annotations[{WEIGHT}]"


def guarantees_within_capacity(quotas: Quotas, capacity: Mapping[str, int]) -> Iterator[Finding]:
    """Warn when guarantees add up to more than the nodes have: they cannot all be used at once.

    A quota's guarantee is not counted where an ancestor guarantees the resource: it is part of the
    ancestor's.
    """
    by_name = {bounds.name: bounds for _, bounds in quotas}
    total: dict[str, int] = {}
    for manifest, bounds in quotas:
        for resource, amount in bounds.min:
            if _is_guaranteed_above(bounds, resource, by_name):
                continue
            if is_model(resource) and not capacity.get(resource):
                continue  # see `models_exist`
            before = total.get(resource, 0)
            total[resource] = before + amount
            have = capacity.get(resource, 0)
            if before <= have < total[resource]:
                wanted, there = (
                    quantity.text(resource, total[resource]),
                    quantity.text(resource, have),
                )
                sums = f"{wanted} of {there} {resource}"
                problem = f"with this quota, guarantees add up to {sums} that the nodes have"
                yield manifest.finding("warning", bound_field(manifest, "min", resource), problem)


def _is_guaranteed_above(quota: Quota, resource: str, by_name: Mapping[str, Quota]) -> bool:
    while quota.parent is not None:
        quota = by_name[quota.parent]
        if any(name == resource for name, _ in quota.min):
            return True
    return False


def bound_field(manifest: Manifest, word: str, resource: str) -> str:
    """The field of a bound, with the resource spelled as written."""
    if manifest.kind == queues.KIND:
        fields = {"min": "spec.guarantee.resource", "max": "spec.capability"}
        return queues.field(manifest, fields.get(word, f"spec.{word}"), resource)
    bounds: Mapping[str, object] | None = getattr(spec(manifest), word)
    return f"spec.{word}[{as_written(resource, bounds)}]"


def pointer(manifest: Manifest) -> str:
    """An object and its place, for a message."""
    return f"{manifest.title} ({manifest.place})"
