"""The rules that objects must obey together: one function a rule, all in one place.

A rule yields findings; it never raises and never changes anything. It is asked only about objects
that make sense by themselves. `aliquot simulate` refuses to start on an error and prints warnings;
`aliquot validate` prints all of them.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

from aliquot.dialects.findings import Finding
from aliquot.dialects.labels import unquoted
from aliquot.dialects.manifest import Manifest
from aliquot.dialects.nodes import node
from aliquot.dialects.quotas import hard, has_koordinator_keys, quota
from aliquot.dialects.wire import (
    Affinity,
    PodSpec,
    PodWire,
    QuotaWire,
    WorkloadWire,
)
from aliquot.engine.objects import Amounts, Node, Quota, Shape, plus
from aliquot.engine.quantity import LIMIT, text
from aliquot.engine.where import barred


def check_quotas(objects: Collection[Manifest], all_nodes: bool = True) -> Iterator[Finding]:
    """Everything there is to say about the quotas, in the light of all objects.

    Without `all_nodes`, nothing is said about what the nodes have: some of them are not known.
    """
    quotas = [each for each in objects if each.kind == "ElasticQuota"]
    yield from min_within_max(quotas)
    yield from one_quota_a_namespace(quotas)
    yield from within_hard(quotas, objects)
    if all_nodes:
        yield from guarantees_within_capacity(quotas, objects)


def min_within_max(quotas: Iterable[Manifest]) -> Iterator[Finding]:
    """A guarantee above the ceiling could never be kept."""
    for manifest in quotas:
        bounds = quota(manifest)
        ceiling = dict(bounds.max)
        for resource, low in bounds.min:
            high = ceiling.get(resource, low)
            if low > high:
                problem = f"min {text(resource, low)} is above max {text(resource, high)}"
                yield _error(manifest, f"spec.min[{resource}]", problem)


def one_quota_a_namespace(quotas: Iterable[Manifest]) -> Iterator[Finding]:
    """Which of two quotas would a pod belong to? (Koordinator's trees name theirs by label.)"""
    first: dict[str, Manifest] = {}
    for manifest in quotas:
        if has_koordinator_keys(manifest):
            continue
        other = first.setdefault(manifest.namespace, manifest)
        if other is not manifest:
            problem = f"the namespace has a quota already: {other.name} ({other.place})"
            yield _error(manifest, "metadata.namespace", problem)


def within_hard(quotas: Iterable[Manifest], objects: Iterable[Manifest]) -> Iterator[Finding]:
    """A bound above the namespace's ResourceQuota promises what pods are refused at creation."""
    limits: dict[str, list[tuple[Manifest, dict[str, int]]]] = {}
    for manifest in objects:
        if manifest.kind == "ResourceQuota":
            limits.setdefault(manifest.namespace, []).append((manifest, hard(manifest)))
    for manifest in quotas:
        bounds = quota(manifest)
        for owner, limit in limits.get(manifest.namespace, []):
            for word, bound in (("min", bounds.min), ("max", bounds.max)):
                for resource, amount in bound:
                    if amount > limit.get(resource, amount):
                        problem = (
                            f"{word} {text(resource, amount)} is above hard "
                            f"{text(resource, limit[resource])} of ResourceQuota {owner.name}"
                        )
                        yield _error(manifest, f"spec.{word}[{resource}]", problem)


def guarantees_within_capacity(
    quotas: Iterable[Manifest], objects: Iterable[Manifest]
) -> Iterator[Finding]:
    """Guarantees that add up to more than the nodes have cannot all be kept at once."""
    nodes = [node(manifest) for manifest in objects if manifest.kind == "Node"]
    capacity = dict(plus(*(each.allocatable for each in nodes)))
    total: dict[str, int] = {}
    for manifest in quotas:
        for resource, amount in quota(manifest).min:
            before = total.get(resource, 0)
            total[resource] = before + amount
            have = capacity.get(resource, 0)
            if nodes and before <= have < total[resource]:
                sums = f"{text(resource, total[resource])} of {text(resource, have)} {resource}"
                problem = f"with this quota, guarantees add up to {sums} that the nodes have"
                yield _warning(manifest, f"spec.min[{resource}]", problem)


def check_object(manifest: Manifest) -> Iterator[Finding]:
    """What is worth a word about one object by itself."""
    yield from text_in_quotes(manifest)
    match manifest.content:
        case PodWire(spec=spec):
            yield from only_what_is_considered(manifest, spec, "spec")
        case WorkloadWire(spec=spec) if spec is not None and spec.template is not None:
            yield from only_what_is_considered(manifest, spec.template.spec, "spec.template.spec")
        case QuotaWire():
            yield from only_what_is_supported(manifest)


def text_in_quotes(manifest: Manifest) -> Iterator[Finding]:
    """An API server refuses labels and annotations that are not text."""
    metadata = manifest.metadata
    for word, values in (("labels", metadata.labels), ("annotations", metadata.annotations)):
        for key in unquoted(values):
            problem = "is not text (put it in quotes); an API server would refuse it"
            yield _warning(manifest, f"metadata.{word}[{key}]", problem)


def only_what_is_considered(
    manifest: Manifest, spec: PodSpec | None, field: str
) -> Iterator[Finding]:
    """Wishes that a pod may have and that have no effect here yet."""
    if spec is None:
        return
    affinity = spec.affinity or Affinity()
    wishes = {
        "affinity.podAffinity": affinity.pod_affinity,
        "affinity.podAntiAffinity": affinity.pod_anti_affinity,
        "topologySpreadConstraints": spec.topology_spread_constraints,
    }
    for wish, value in wishes.items():
        if value:
            yield _warning(manifest, f"{field}.{wish}", "is not considered yet")


def only_what_is_supported(manifest: Manifest) -> Iterator[Finding]:
    """A quota that could only be misread is refused."""
    if has_koordinator_keys(manifest):
        yield _error(manifest, "metadata", "Koordinator keys are not supported yet")
    bounds = quota(manifest)
    for word, bound in (("min", bounds.min), ("max", bounds.max)):
        for resource, _ in bound:
            if resource.endswith("/gpu-memory"):
                field = f"spec.{word}[{resource}]"
                yield _error(manifest, field, "GPU memory is not supported yet")


def can_never_start(manifest: Manifest, field: str, why: str) -> Finding:
    """A pod that waits for ever is legal, and hardly what its author wants."""
    return _warning(manifest, field, f"can never start: {why}")


def above_max(shape: Shape, bounds: Quota) -> str | None:
    """Why a pod is more than its quota may ever use, if it is."""
    ceiling = dict(bounds.max)
    for resource, asked in shape.requests:
        high = ceiling.get(resource, LIMIT)
        if asked > high:
            numbers = f"{text(resource, asked)} {resource}, max is {text(resource, high)}"
            return f"asks for {numbers} in quota {bounds.name}"
    return None


def too_large(shape: Shape, nodes: Sequence[Node]) -> str | None:
    """Why no node could hold a pod even when empty, if none could."""
    sizes: dict[Amounts, list[Node]] = {}
    for each in nodes:
        sizes.setdefault(each.allocatable, []).append(each)
    large_enough = [size for size in sizes if _holds(size, shape)]
    if any(barred(shape.where, each) is None for size in large_enough for each in sizes[size]):
        return None
    for resource, asked in shape.requests:
        most = max(dict(size).get(resource, 0) for size in sizes)
        if asked > most:
            numbers = f"{text(resource, asked)} {resource}, no node has more than"
            return f"asks for {numbers} {text(resource, most)}"
    if not large_enough:
        return "no single node has all that it asks for"
    return "its selectors or the nodes' taints keep it off every node that is large enough"


def _holds(size: Amounts, shape: Shape) -> bool:
    has = dict(size)
    return all(asked <= has.get(resource, 0) for resource, asked in shape.requests)


def _error(manifest: Manifest, field: str, problem: str) -> Finding:
    return Finding("error", manifest.place, manifest.title, field, problem)


def _warning(manifest: Manifest, field: str, problem: str) -> Finding:
    return Finding("warning", manifest.place, manifest.title, field, problem)
