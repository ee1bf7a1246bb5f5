"""The rules that objects must obey together: one function a rule, all in one place.

A rule yields findings; it never raises and never changes anything. `aliquot simulate` refuses to
start on an error and prints warnings.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from aliquot.dialects import amounts
from aliquot.dialects.labels import unquoted
from aliquot.dialects.manifest import Key, Manifest
from aliquot.dialects.nodes import node
from aliquot.dialects.quotas import has_koordinator_keys, quota
from aliquot.dialects.wire import (
    Affinity,
    PodSpec,
    PodWire,
    QuotaWire,
    ResourceQuotaSpec,
    ResourceQuotaWire,
    WorkloadWire,
)
from aliquot.engine.objects import plus
from aliquot.engine.quantity import text
from aliquot.errors import InputError


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with an object, or worth a word."""

    severity: Literal["error", "warning"]
    manifest: Manifest
    field: str
    problem: str

    def error(self) -> InputError:
        """The finding as an error to raise."""
        return self.manifest.error(self.field, self.problem)


def check_quotas(objects: Mapping[Key, Manifest]) -> Iterator[Finding]:
    """Everything there is to say about the quotas, in the light of all objects."""
    quotas = [each for each in objects.values() if each.kind == "ElasticQuota"]
    yield from min_within_max(quotas)
    yield from one_quota_a_namespace(quotas)
    yield from within_hard(quotas, objects.values())
    yield from guarantees_within_capacity(quotas, objects.values())


def min_within_max(quotas: Iterable[Manifest]) -> Iterator[Finding]:
    """A guarantee above the ceiling could never be kept."""
    for manifest in quotas:
        bounds = quota(manifest)
        ceiling = dict(bounds.max)
        for resource, low in bounds.min:
            high = ceiling.get(resource, low)
            if low > high:
                problem = f"min {text(resource, low)} is above max {text(resource, high)}"
                yield Finding("error", manifest, f"spec.min[{resource}]", problem)


def one_quota_a_namespace(quotas: Iterable[Manifest]) -> Iterator[Finding]:
    """Which of two quotas would a pod belong to? (Koordinator's trees name theirs by label.)"""
    first: dict[str, Manifest] = {}
    for manifest in quotas:
        if has_koordinator_keys(manifest):
            continue
        other = first.setdefault(manifest.namespace, manifest)
        if other is not manifest:
            problem = f"the namespace has a quota already: {other.name} ({other.place})"
            yield Finding("error", manifest, "metadata.namespace", problem)


def within_hard(quotas: Iterable[Manifest], objects: Iterable[Manifest]) -> Iterator[Finding]:
    """A bound above the namespace's ResourceQuota promises what pods are refused at creation."""
    hard: dict[str, list[tuple[Manifest, dict[str, int]]]] = {}
    for manifest in objects:
        if isinstance(manifest.content, ResourceQuotaWire):
            spec = manifest.content.spec or ResourceQuotaSpec()
            limits = amounts.read(_countable(spec), manifest, "spec.hard")
            hard.setdefault(manifest.namespace, []).append((manifest, limits))
    for manifest in quotas:
        bounds = quota(manifest)
        for owner, limits in hard.get(manifest.namespace, []):
            for word, bound in (("min", bounds.min), ("max", bounds.max)):
                for resource, amount in bound:
                    limit = limits.get(resource, limits.get(f"requests.{resource}", amount))
                    if amount > limit:
                        problem = (
                            f"{word} {text(resource, amount)} is above hard "
                            f"{text(resource, limit)} of ResourceQuota {owner.name}"
                        )
                        yield Finding("error", manifest, f"spec.{word}[{resource}]", problem)


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
                yield Finding("warning", manifest, f"spec.min[{resource}]", problem)


def check_object(manifest: Manifest, objects: Mapping[Key, Manifest]) -> Iterator[Finding]:
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
            yield Finding("warning", manifest, f"metadata.{word}[{key}]", problem)


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
            yield Finding("warning", manifest, f"{field}.{wish}", "is not considered yet")


def only_what_is_supported(manifest: Manifest) -> Iterator[Finding]:
    """A quota that could only be misread is refused."""
    if has_koordinator_keys(manifest):
        yield Finding("error", manifest, "metadata", "Koordinator keys are not supported yet")
    bounds = quota(manifest)
    for word, bound in (("min", bounds.min), ("max", bounds.max)):
        for resource, _ in bound:
            if resource.endswith("/gpu-memory"):
                field = f"spec.{word}[{resource}]"
                yield Finding("error", manifest, field, "GPU memory is not supported yet")


def _countable(spec: ResourceQuotaSpec) -> dict[str, str | int | float]:
    """The keys of `hard` that are quantities of a resource pods ask for."""
    return {key: value for key, value in (spec.hard or {}).items() if "volcano.sh/" not in key}
