"""Warnings for requests that nothing in the input can ever meet: one function a rule.

A resource, a GPU pool or a GPU model that no node ever has; GPUs above the bound on a single pod; a
claim above the sum of min, where nothing else is lent. Unlike `unschedulable`, which looks at every
state, these look at all objects that the input ever brings. A Job that counts evictions as failures
is here as well: it does not outlive the reclaims that borrowing leads to.
"""

import difflib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from aliquot.dialects import policy
from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core import pods
from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.gpu_models import is_model
from aliquot.dialects.core.manifest import Key, Manifest
from aliquot.dialects.core.nodes import node
from aliquot.dialects.core.objects import PodWire, Quantities, WorkloadWire
from aliquot.dialects.core.pod_templates import PodTemplateView, template_views
from aliquot.dialects.kep9 import quotas
from aliquot.dialects.nos.cards import Cards
from aliquot.dialects.tensor_fusion import derived_gpus, gpus
from aliquot.dialects.tensor_fusion import quotas as gpu_quotas
from aliquot.dialects.tensor_fusion.annotations import PREFIX
from aliquot.dialects.volcano import jobs, queues
from aliquot.dialects.volcano.objects import GangJobWire
from aliquot.engine import (
    GPU_MEMORY,
    Amounts,
    Device,
    DeviceRequest,
    GpuQuota,
    Node,
    Quota,
    Shape,
    above_single,
    quantity,
)
from aliquot.json import seek
from aliquot.validation.history import State

_STANDARD = {"cpu", "memory", "pods", "ephemeral-storage", GPU_MEMORY}
"""Resources that every node has, whether its object states them or not; and a unit of quotas."""
_WELL_KNOWN = ("amd.com/gpu", "habana.ai/gaudi", "nvidia.com/gpu")
"""Resources that a name is compared with where no nodes are given."""
_NEARLY = 0.85
"""How alike a name is that was meant to be another: one letter more or less in `nvidia.com/gpu`."""


@dataclass(slots=True)
class UnmetRequests:
    """The valid objects that the input ever brings, as far as these rules read them."""

    settings: Configuration
    cards: Cards = field(default_factory=Cards)
    _objects: dict[Key, Manifest] = field(default_factory=dict)
    _quota_of: dict[tuple[Key, str], Quota] = field(default_factory=dict)
    """The quota of each pod or template, when it came."""
    _sums: dict[str, int] = field(default_factory=dict)
    """The highest sum of min there ever is, by resource."""
    _knows_all_nodes: bool = True

    def add_state(self, state: State) -> None:
        """Take the objects of a state's change."""
        self.cards = state.cards
        self._knows_all_nodes &= state.knows_all_nodes
        if state.quotas_changed:
            for resource, amount in _sum_of_min(state.quota_index.quotas.values()).items():
                self._sums[resource] = max(amount, self._sums.get(resource, 0))
        for each in state.applied:
            self._objects[each.key] = each
            for view in template_views(each):
                named = state.requested_quota(each, view)
                home = state.quota_index.membership.of(named, each.namespace)
                if home is not None:
                    self._quota_of[each.key, view.at] = state.quota_index.quotas[home]

    def findings(self) -> Iterator[Finding]:
        """All warnings about the objects so far."""
        found = self._objects.values()
        nodes = [node(each, self.cards) for each in found if each.kind == "Node"]
        on_nodes = {name for each in nodes for name, _ in each.allocatable}
        devices = self._devices(nodes)
        bounds = {
            each.namespace: each
            for each in (gpu_quotas.quota(one) for one in found if one.kind == gpu_quotas.KIND)
        }
        lent = self._lent_by()
        for manifest in found:
            if self._knows_all_nodes:
                yield from resources_exist(manifest, on_nodes)
            yield from evictions_are_ignored(manifest, bool(self._homes(manifest)))
            for view in template_views(manifest):
                if self.cards.shared:
                    yield from gpus_exist(manifest, view, devices, self.cards)
                    yield from within_single(manifest, view, bounds, self.cards)
            if lent:
                yield from within_sum_of_min(
                    manifest, self._homes(manifest), self._sums, self.cards, lent
                )

    def _homes(self, manifest: Manifest) -> dict[str, Quota]:
        """The quotas of an object's pods, by the prefix of their fields."""
        found = ((each.at, (manifest.key, each.at)) for each in template_views(manifest))
        return {at: self._quota_of[key] for at, key in found if key in self._quota_of}

    def _lent_by(self) -> str:
        """The knob that could lend more than unused min; empty where it does so, or none is."""
        chosen = policy.expected(self.settings, self._objects.values())
        knobs = {"capacity": self.settings.capacity.borrow, "fair": self.settings.fair.borrow}
        return f"{chosen}.borrow" if knobs.get(chosen) == "unusedMin" else ""

    def _devices(self, nodes: Iterable[Node]) -> list[Device]:
        if not self.cards.shared:
            return []
        given = [gpus.device(each) for each in self._objects.values() if each.kind == gpus.KIND]
        derived = (each for one in nodes for each in derived_gpus.devices(one, self.cards))
        return [*given, *derived]


def resources_exist(manifest: Manifest, on_nodes: Collection[str]) -> Iterator[Finding]:
    """Warn of a resource that no node has, with the name that was probably meant."""
    known = _STANDARD.union(on_nodes)
    for where, written in _quantities(manifest):
        for name, amount in (written or {}).items():
            if name in known or GPU_MEMORY in (name, _unit(name)) or amount in (0, "0"):
                continue
            if is_model(name):
                continue  # see `kep9.rules.models_exist`
            close = difflib.get_close_matches(name, sorted(known | {*_WELL_KNOWN}), 1, _NEARLY)
            hint = f"; did you mean {close[0]}?" if close and close[0] != name else ""
            if on_nodes or hint:
                problem = (
                    "no node has this resource" if on_nodes else "is no resource that is known"
                )
                yield manifest.finding("warning", f"{where}[{name}]", f"{problem}{hint}")


def _unit(name: str) -> str:
    """GPU memory in whichever spelling; other resources as they are."""
    return GPU_MEMORY if name.endswith("/gpu-memory") else name


def _quantities(manifest: Manifest) -> Iterator[tuple[str, Quantities | None]]:
    """The quantities in which pods ask for resources and quotas bound them, by field."""
    for view in template_views(manifest):
        for word in ("containers", "init_containers"):
            containers = getattr(view.spec, word, None) or []
            shown = {"containers": "containers", "init_containers": "initContainers"}[word]
            for index, each in enumerate(containers):
                for part in ("requests", "limits"):
                    at = f"{view.spec_field}.{shown}[{index}].resources.{part}"
                    yield at, getattr(each.resources, part, None)
    if manifest.kind in quotas.KINDS:
        bounds = quotas.spec(manifest)
        yield from (("spec.min", bounds.min), ("spec.max", bounds.max))
    elif manifest.kind == queues.KIND:
        yield from queues.bounds(manifest).items()


def gpus_exist(
    manifest: Manifest, view: PodTemplateView, devices: Collection[Device], cards: Cards
) -> Iterator[Finding]:
    """Warn of a pool, model or vendor that no GPU has."""
    ask = _shape(manifest, view, cards).gpu
    if ask is None or not devices:
        return
    for key, word, wanted, there in (
        ("gpupool", "pool", ask.pool, {each.pool for each in devices}),
        ("gpu-model", "model", ask.model, {each.model for each in devices}),
        ("vendor", "vendor", ask.vendor, {each.vendor for each in devices}),
    ):
        if wanted and wanted.lower() not in {each.lower() for each in there}:
            has = ", ".join(sorted(filter(None, there))) or "none"
            problem = f"no GPU is of the {word} {wanted!r} (there are: {has})"
            where = f"{view.metadata_field}.annotations[{PREFIX}{key}]"
            yield manifest.finding("warning", where, problem)


def within_single(
    manifest: Manifest, view: PodTemplateView, bounds: Mapping[str, GpuQuota], cards: Cards
) -> Iterator[Finding]:
    """Warn of a pod above the bound on a single pod of its GPUResourceQuota: it never starts."""
    quota = bounds.get(manifest.namespace)
    ask = _shape(manifest, view, cards).gpu if quota is not None else None
    if quota is None or ask is None:
        return
    for each in above_single(quota, DeviceRequest(ask.request, ask.limit, ask.count)):
        yield manifest.finding("warning", view.spec_field, f"can never start: {each}")


def within_sum_of_min(
    manifest: Manifest, homes: Mapping[str, Quota], sums: Mapping[str, int], cards: Cards, knob: str
) -> Iterator[Finding]:
    """Warn of a claim above the sum of min, beyond which nothing is lent by default."""
    for where, home, claim in _claims(manifest, homes, cards):
        own = dict(home.min)
        for resource, asked in claim:
            total = sums.get(resource, 0)
            if resource in own and asked > total:
                wants, most = quantity.text(resource, asked), quantity.text(resource, total)
                problem = f"can never start: asks for {wants} {resource}, the sum of min is {most}"
                advice = f"it could with {knob}: freeCapacity"
                yield manifest.finding("warning", where, f"{problem}; {advice}")
                break


def _claims(
    manifest: Manifest, homes: Mapping[str, Quota], cards: Cards
) -> Iterator[tuple[str, Quota, Amounts]]:
    """What starts as a whole: a pod, or as many pods of a Volcano Job as must start together."""
    views = [each for each in template_views(manifest) if each.at in homes]
    if isinstance(manifest.content, GangJobWire):
        if views:
            yield "spec", homes[views[0].at], _gang(manifest, cards)
        return
    for view in views:
        running = isinstance(manifest.content, PodWire) and (view.spec and view.spec.node_name)
        if not running:
            yield view.spec_field, homes[view.at], _charge(_shape(manifest, view, cards))


def _gang(manifest: Manifest, cards: Cards) -> Amounts:
    """What the smallest set of pods asks for with which a Volcano Job can start."""
    tasks, total = jobs.tasks(manifest), Counter[str]()
    views = template_views(manifest)
    spare = jobs.min_available(manifest)
    for task, view in zip(tasks, views, strict=True):
        number = min(task.min_available, spare)
        spare -= number
        for resource, amount in _charge(_shape(manifest, view, cards)):
            total[resource] += number * amount
    return tuple(sorted(total.items()))


def _charge(shape: Shape) -> Amounts:
    return dict(shape.charges).get("", shape.requests)


def _shape(manifest: Manifest, view: PodTemplateView, cards: Cards) -> Shape:
    metadata = view.metadata if cards.shared else None
    return pods.shape(view.spec, None, manifest, cards, view.spec_field, metadata)


def _sum_of_min(found: Iterable[Quota]) -> Counter[str]:
    """The sum of min over leaf quotas."""
    sums: Counter[str] = Counter()
    for each in found:
        if not each.is_parent:
            sums.update(dict(each.min))
    return sums


def evictions_are_ignored(manifest: Manifest, in_quota: bool) -> Iterator[Finding]:
    """Warn of a Job that counts an eviction as a failure of its pod: reclaims use up its retries.

    A Job without any policy counts them as well; it is reported where a quota holds its pods.
    """
    if manifest.kind != "Job" or not isinstance(manifest.content, WorkloadWire):
        return
    written = seek(manifest.body, "spec", "podFailurePolicy")
    if written is None and not in_quota:
        return
    rules = seek(manifest.body, "spec", "podFailurePolicy", "rules")
    if not any(_ignores(each) for each in (rules if isinstance(rules, list) else ())):
        problem = "does not ignore DisruptionTarget: each reclaim spends its backoffLimit"
        cure = "add the rule {action: Ignore, onPodConditions: [{type: DisruptionTarget}]}"
        yield manifest.finding("warning", "spec.podFailurePolicy", f"{problem}; {cure}")


def _ignores(rule: object) -> bool:
    """Does a rule of a podFailurePolicy ignore pods that were evicted?"""
    conditions = seek(rule, "onPodConditions")
    named = conditions if isinstance(conditions, list) else []
    is_named = any(seek(each, "type") == "DisruptionTarget" for each in named)
    return seek(rule, "action") == "Ignore" and is_named
