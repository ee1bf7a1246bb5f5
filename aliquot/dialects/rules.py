"""The rules that objects must obey together: one function a rule, all in one place.

A rule yields findings; it never raises and never changes anything. `aliquot simulate` refuses to
start on an error and prints warnings.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from aliquot.dialects import amounts
from aliquot.dialects.manifest import Key, Manifest
from aliquot.dialects.nodes import node
from aliquot.dialects.quotas import has_koordinator_keys, quota
from aliquot.dialects.wire import PodWire, ResourceQuotaSpec, ResourceQuotaWire
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


def check_pod(manifest: Manifest, objects: Mapping[Key, Manifest]) -> Iterator[Finding]:
    """A pod can only run on a node that is there."""
    assert isinstance(manifest.content, PodWire)
    spec = manifest.content.spec
    name = spec.node_name if spec is not None else None
    if name and ("Node", "", name) not in objects:
        yield Finding("error", manifest, "spec.nodeName", f"there is no node {name}")


def _countable(spec: ResourceQuotaSpec) -> dict[str, str | int | float]:
    """The keys of `hard` that are quantities of a resource pods ask for."""
    return {key: value for key, value in (spec.hard or {}).items() if "volcano.sh/" not in key}
