"""Pods as the engine sees them: above all, what one asks for in all, and where it may run."""

from collections.abc import Mapping
from functools import reduce

from aliquot.dialects.core import amounts
from aliquot.dialects.core.labels import text_map
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import (
    Container,
    Metadata,
    PodSpec,
    PodStatus,
    PodWire,
    Quantities,
    ResourceRequirements,
    SelectorRequirement,
    SelectorTerm,
)
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.dialects.nos.cards import Cards
from aliquot.dialects.nos.gpu_memory import as_written
from aliquot.dialects.tensor_fusion import annotations as gpu_annotations
from aliquot.dialects.tensor_fusion import requests as gpu_requests
from aliquot.dialects.tensor_fusion.quotas import NO_DEFAULTS, Defaults
from aliquot.dialects.volcano import keys as volcano
from aliquot.engine import (
    GPU_MEMORY,
    NodeConstraints,
    Pod,
    Requirement,
    Shape,
    Term,
    Toleration,
    quantity,
)

_OPERATORS = {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"}
_EFFECTS = {"", "NoSchedule", "PreferNoSchedule", "NoExecute"}
_FINISHED = {"Succeeded", "Failed"}

Sums = dict[str, int]
PriorityInfo = tuple[int, bool]
"""A priority, and whether it lets its pods preempt."""


def pod(
    manifest: Manifest,
    uid: str,
    priority_infos: PriorityInfo,
    created: int,
    cards: Cards,
    defaults: Defaults = NO_DEFAULTS,
    known: Shape | None = None,
    started: int = 0,
) -> Pod:
    """A pod by itself; its quota and its gang, other objects decide.

    `defaults` is what it asks for of GPUs where it does not say. Who has read the same words before
    passes the shape that is `known` for them. No room is held for one that has its node.
    """
    said, doing = spec(manifest), status(manifest)
    metadata = manifest.metadata
    labels = text_map(metadata.labels, manifest, "metadata.labels")
    priority, preempts = priority_infos
    return Pod(
        uid=uid,
        namespace=manifest.namespace,
        name=manifest.name,
        shape=known or shape(said, doing, manifest, cards, metadata=metadata, defaults=defaults),
        priority=priority,
        created=created,
        node=said.node_name or None,
        nominated=(not said.node_name and doing.nominated_node_name) or None,
        gated=bool(said.scheduling_gates),
        terminating=metadata.deletion_timestamp is not None,
        preempts=preempts,
        preemptible=koordinator.is_preemptible(labels) and volcano.is_preemptable(metadata),
        started=started,
        labels=tuple(sorted(labels.items())),
        task=volcano.group_ref(metadata, manifest).task,
        devices=devices(manifest, cards),
    )


def devices(manifest: Manifest, cards: Cards) -> tuple[str, ...]:
    """The GPUs that a pod runs on, as it says itself; none while it waits."""
    if not cards.shared or not spec(manifest).node_name:
        return ()
    return gpu_annotations.devices(manifest.metadata, manifest)


def spec(manifest: Manifest) -> PodSpec:
    """What is written about it; an empty one, if nothing is."""
    content = manifest.content
    assert isinstance(content, PodWire)
    return content.spec or PodSpec()


def status(manifest: Manifest) -> PodStatus:
    """How it is doing; an empty one, if nothing is known."""
    content = manifest.content
    assert isinstance(content, PodWire)
    return content.status or PodStatus()


def shape(
    spec: PodSpec | None,
    status: PodStatus | None,
    manifest: Manifest,
    cards: Cards,
    field: str = "spec",
    metadata: Metadata | None = None,
    defaults: Defaults = NO_DEFAULTS,
) -> Shape:
    """What the pod asks for and where it may run. `field` is where the spec stands.

    What it asks for of single GPUs is looked at where `metadata` are given, in which it may say so.
    """
    if spec is None or not spec.containers:
        raise manifest.error(f"{field}.containers", "a pod needs at least one container")
    phases = _phases(spec, status, manifest, field)
    most = reduce(_larger, phases)
    asked = {name: amount for name, amount in most.items() if amount}
    asked["pods"] = 1
    requests = tuple(sorted(asked.items()))
    gpu = None
    if cards.shared and metadata is not None:
        wanted = gpu_annotations.read_request(metadata, manifest)
        gpu = gpu_requests.gpu_ask(wanted, phases, cards.default, defaults)
    return Shape(requests, _where(spec, manifest, field), cards.charges(requests, phases), gpu)


def finished(status: PodStatus | None) -> bool:
    """Has it ended, so that it holds nothing any more?"""
    return status is not None and status.phase in _FINISHED


def _phases(spec: PodSpec, status: PodStatus | None, manifest: Manifest, field: str) -> list[Sums]:
    """What a pod holds in each phase of its life: as it starts up, and then; with overhead.

    A pod asks for the most that it holds in any of them. Sidecars run beside everything that starts
    after them. A container that is being resized counts with the larger of what it has and what it
    wants. What is set for the pod as a whole overrides the sum of its containers.
    """
    has = _allocated(status or PodStatus(), manifest)
    running: Sums = {}
    for index, container in enumerate(spec.containers or []):
        asked = _asks(container.resources, manifest, f"{field}.containers[{index}].resources")
        _add(running, _larger(asked, has.get(container.name, {})))
    phases = _one_after_the_other(spec, running, has, manifest, field)
    summed = reduce(_larger, phases)
    whole = _whole_pod(spec.resources, summed, manifest, f"{field}.resources")
    overhead = _read(spec.overhead, manifest, f"{field}.overhead")
    for phase in phases:
        phase.update(whole)
        _add(phase, overhead)
    return phases


def _allocated(status: PodStatus, manifest: Manifest) -> dict[str, Sums]:
    """What each container has been given, by the word of its node."""
    found: dict[str, Sums] = {}
    for field, statuses in (
        ("status.containerStatuses", status.container_statuses),
        ("status.initContainerStatuses", status.init_container_statuses),
    ):
        for each in statuses or []:
            resources = each.resources or ResourceRequirements()
            found[each.name] = _larger(
                _read(each.allocated_resources, manifest, f"{field}.allocatedResources"),
                _read(resources.requests, manifest, f"{field}.resources.requests"),
            )
    return found


def _one_after_the_other(
    spec: PodSpec, running: Sums, has: Mapping[str, Sums], manifest: Manifest, field: str
) -> list[Sums]:
    """Each init container with the sidecars before it, then the main ones with all sidecars."""
    sidecars: Sums = {}
    phases: list[Sums] = []
    for index, container in enumerate(spec.init_containers or []):
        asked = _asks(container.resources, manifest, f"{field}.initContainers[{index}].resources")
        if _is_sidecar(container):
            _add(sidecars, _larger(asked, has.get(container.name, {})))
            phases.append(dict(sidecars))
        else:
            phases.append(_together(sidecars, asked))
    return [*phases, _together(sidecars, running)]


def _is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def _asks(resources: ResourceRequirements | None, manifest: Manifest, field: str) -> Sums:
    """Requests, and where there is none, the limit, as the API server does it."""
    if resources is None:
        return {}
    asked = _read(resources.requests, manifest, f"{field}.requests")
    limits = _read(resources.limits, manifest, f"{field}.limits")
    for name, limit in limits.items():
        if asked.setdefault(name, limit) > limit:
            numbers = (
                f"requests {quantity.text(name, asked[name])}, limits {quantity.text(name, limit)}"
            )
            raise manifest.error(f"{field}.requests", f"{name} is above its limit: {numbers}")
    return asked


def _read(quantities: Quantities | None, manifest: Manifest, field: str) -> Sums:
    """Amounts that a container can have. GPU memory is none: it is what GPUs come to."""
    found = amounts.read(quantities, manifest, field)
    if found.pop(GPU_MEMORY, 0):
        where = f"{field}[{as_written(GPU_MEMORY, quantities)}]"
        problem = "is a unit of quotas that no node has; ask for GPUs, or slices of them, instead"
        raise manifest.error(where, problem)
    return found


def _whole_pod(
    resources: ResourceRequirements | None, summed: Sums, manifest: Manifest, field: str
) -> Sums:
    """What is asked for the pod as a whole; a limit counts only where no container asks."""
    if resources is None:
        return {}
    explicit = set(resources.requests or {})
    asked = _asks(resources, manifest, field)
    return {
        name: amount for name, amount in asked.items() if name in explicit or name not in summed
    }


def _where(spec: PodSpec, manifest: Manifest, field: str) -> NodeConstraints:
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required: tuple[Term, ...] | None = None
    preferred: tuple[tuple[int, Term], ...] = ()
    if affinity is not None:
        at = f"{field}.affinity.nodeAffinity"
        needed = affinity.required_during_scheduling_ignored_during_execution
        if needed is not None:
            required = tuple(_term(term, manifest, at) for term in needed.node_selector_terms or [])
        preferred = tuple(
            (wish.weight, _term(wish.preference or SelectorTerm(), manifest, at))
            for wish in affinity.preferred_during_scheduling_ignored_during_execution or []
        )
    return NodeConstraints(
        selector=tuple(
            sorted(text_map(spec.node_selector, manifest, f"{field}.nodeSelector").items())
        ),
        required=required,
        preferred=preferred,
        tolerations=_tolerations(spec, manifest, field),
    )


def _term(term: SelectorTerm, manifest: Manifest, field: str) -> Term:
    return Term(
        tuple(_requirement(line, manifest, field) for line in term.match_expressions or []),
        tuple(_requirement(line, manifest, field) for line in term.match_fields or []),
    )


def _requirement(line: SelectorRequirement, manifest: Manifest, field: str) -> Requirement:
    if line.operator not in _OPERATORS:
        known = ", ".join(sorted(_OPERATORS))
        raise manifest.error(field, f"operator {line.operator!r} is none of {known}")
    return Requirement(line.key, line.operator, tuple(line.values or ()))


def _tolerations(spec: PodSpec, manifest: Manifest, field: str) -> tuple[Toleration, ...]:
    found = []
    for each in spec.tolerations or []:
        toleration = Toleration(
            each.key or "", each.operator or "Equal", each.value or "", each.effect or ""
        )
        if toleration.operator not in ("Equal", "Exists"):
            problem = f"operator {each.operator!r} is neither Equal nor Exists"
            raise manifest.error(f"{field}.tolerations", problem)
        if toleration.effect not in _EFFECTS:
            problem = f"effect {each.effect!r} is not an effect of a taint"
            raise manifest.error(f"{field}.tolerations", problem)
        found.append(toleration)
    return tuple(found)


def _add(total: Sums, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _together(one: Mapping[str, int], other: Mapping[str, int]) -> Sums:
    total = dict(one)
    _add(total, other)
    return total


def _larger(one: Mapping[str, int], other: Mapping[str, int]) -> Sums:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
