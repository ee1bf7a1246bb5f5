"""Pods: what one asks for in all, and where it may run."""

from collections.abc import Mapping

from aliquot.dialects import amounts
from aliquot.dialects.labels import texts
from aliquot.dialects.manifest import Manifest
from aliquot.dialects.wire import (
    Container,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    SelectorRequirement,
    SelectorTerm,
)
from aliquot.engine.objects import Requirement, Shape, Term, Toleration, Where
from aliquot.engine.quantity import text

_OPERATORS = {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"}
_EFFECTS = {"", "NoSchedule", "PreferNoSchedule", "NoExecute"}
_FINISHED = {"Succeeded", "Failed"}

Sums = dict[str, int]


def shape(
    spec: PodSpec | None, status: PodStatus | None, manifest: Manifest, field: str = "spec"
) -> Shape:
    """What the pod asks for and where it may run. `field` is where the spec stands."""
    if spec is None or not spec.containers:
        raise manifest.error(f"{field}.containers", "a pod needs at least one container")
    requests = request(spec, status, manifest, field)
    asked = {name: amount for name, amount in requests.items() if amount}
    asked["pods"] = 1
    return Shape(tuple(sorted(asked.items())), _where(spec, manifest, field))


def finished(status: PodStatus | None) -> bool:
    """Has it ended, so that it holds nothing any more?"""
    return status is not None and status.phase in _FINISHED


def request(spec: PodSpec, status: PodStatus | None, manifest: Manifest, field: str) -> Sums:
    """What a pod asks for: the larger of its containers together and its start-up, and overhead.

    Sidecars run beside everything that starts after them. A container that is being resized counts
    with the larger of what it has and what it wants. What is set for the pod as a whole overrides
    the sum of its containers.
    """
    has = _allocated(status or PodStatus(), manifest)
    running: Sums = {}
    for index, container in enumerate(spec.containers or []):
        asked = _asks(container.resources, manifest, f"{field}.containers[{index}].resources")
        _add(running, _larger(asked, has.get(container.name, {})))
    total = _larger(*_start_up(spec, running, has, manifest, field))
    total.update(_whole_pod(spec.resources, total, manifest, f"{field}.resources"))
    _add(total, amounts.read(spec.overhead, manifest, f"{field}.overhead"))
    return total


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
                amounts.read(each.allocated_resources, manifest, f"{field}.allocatedResources"),
                amounts.read(resources.requests, manifest, f"{field}.resources.requests"),
            )
    return found


def _start_up(
    spec: PodSpec, running: Sums, has: Mapping[str, Sums], manifest: Manifest, field: str
) -> tuple[Sums, Sums]:
    """The peak while init containers run one by one, and what runs beside the main ones."""
    sidecars: Sums = {}
    peak: Sums = {}
    for index, container in enumerate(spec.init_containers or []):
        asked = _asks(container.resources, manifest, f"{field}.initContainers[{index}].resources")
        if _is_sidecar(container):
            _add(sidecars, _larger(asked, has.get(container.name, {})))
            peak = _larger(peak, sidecars)
        else:
            at_once = dict(sidecars)
            _add(at_once, asked)
            peak = _larger(peak, at_once)
    together = dict(running)
    _add(together, sidecars)
    return peak, together


def _is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def _asks(resources: ResourceRequirements | None, manifest: Manifest, field: str) -> Sums:
    """Requests, and where there is none, the limit, as the API server does it."""
    if resources is None:
        return {}
    asked = amounts.read(resources.requests, manifest, f"{field}.requests")
    limits = amounts.read(resources.limits, manifest, f"{field}.limits")
    for name, limit in limits.items():
        if asked.setdefault(name, limit) > limit:
            numbers = f"requests {text(name, asked[name])}, limits {text(name, limit)}"
            raise manifest.error(f"{field}.requests", f"{name} is above its limit: {numbers}")
    return asked


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


def _where(spec: PodSpec, manifest: Manifest, field: str) -> Where:
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
    return Where(
        selector=tuple(
            sorted(texts(spec.node_selector, manifest, f"{field}.nodeSelector").items())
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


def _larger(one: Mapping[str, int], other: Mapping[str, int]) -> Sums:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
