"""Pods as the engine's: above all, what a pod requests in all, and the nodes it may run on.

What a pod requests is computed as kube-scheduler computes it, with init containers, sidecars,
overhead, resizes and pod-level resources.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from aliquot.dialects.core import amounts, lifetimes
from aliquot.dialects.core.gpu_models import is_model
from aliquot.dialects.core.labels import text_map
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.node_terms import node_term
from aliquot.dialects.core.objects import (
    Container,
    Metadata,
    PodSpec,
    PodStatus,
    PodWire,
    Quantities,
    ResourceRequirements,
    SelectorTerm,
)
from aliquot.dialects.core.pod_phases import Sums, add, larger, most, phases
from aliquot.dialects.core.pod_rules import pod_rules
from aliquot.dialects.core.storage.volumes import volume_uses
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
    PodRules,
    Shape,
    Term,
    Toleration,
    quantity,
)

_EFFECTS = {"", "NoSchedule", "PreferNoSchedule", "NoExecute"}
DEFAULT_SCHEDULER = "default-scheduler"
"""The scheduler of a pod that names none."""
FINISHED = {"Succeeded", "Failed"}
"""The phases of pods that have ended."""

PriorityInfo = tuple[int, bool]
"""A priority, and whether pods of it may preempt others."""
Images = tuple[str, ...]
"""An image for each container."""
_MOST_TEMPLATES = 20_000
"""Tuples of images that pods share: about as many as clusters have templates."""


def pod(
    manifest: Manifest,
    uid: str,
    priority_infos: PriorityInfo,
    created: int,
    cards: Cards,
    defaults: Defaults = NO_DEFAULTS,
    known: Shape | None = None,
    started: int = 0,
    gone_by: int | None = None,
    rules: PodRules | None = None,
    images: Images | None = None,
) -> Pod:
    """A pod by itself: its quota and its gang depend on other objects and are left empty.

    `defaults` are the GPU requests of its namespace, for a pod that states none. `known` is the
    shape, and `rules` and `images` are the same, if they were read before for an equal pod. A pod
    that has a node is not nominated. `started` and `gone_by` are on the caller's clock, which is
    not always that of the manifest.
    """
    pod_spec, pod_status = spec(manifest), status(manifest)
    metadata = manifest.metadata
    labels = text_map(metadata.labels, manifest, "metadata.labels")
    priority, preempts = priority_infos
    return Pod(
        uid=uid,
        namespace=manifest.namespace,
        name=manifest.name,
        shape=known
        or shape(pod_spec, pod_status, manifest, cards, metadata=metadata, defaults=defaults),
        priority=priority,
        created=created,
        node=pod_spec.node_name or None,
        nominated=(not pod_spec.node_name and pod_status.nominated_node_name) or None,
        gated=bool(pod_spec.scheduling_gates),
        unsupported=unsupported(pod_spec),
        terminating=metadata.deletion_timestamp is not None,
        preempts=preempts,
        preemptible=koordinator.is_preemptible(labels) and volcano.is_preemptable(metadata),
        started=started,
        labels=tuple(sorted(labels.items())),
        task=volcano.group_ref(metadata, manifest).task,
        devices=devices(manifest, cards),
        expected_duration=lifetimes.expected_duration(manifest, pod_spec),
        grace_period=lifetimes.grace_period(manifest, pod_spec),
        gone_by=gone_by,
        endless=lifetimes.is_endless(manifest),
        rules=_with_volumes(
            pod_rules(pod_spec, manifest, labels) if rules is None else rules, pod_spec, manifest
        ),
        images=container_images(pod_spec) if images is None else images,
    )


def container_images(pod_spec: PodSpec) -> Images:
    """The image of each container, init containers first, as nodes name it: with a tag.

    Pods of one template share them.
    """
    containers = *(pod_spec.init_containers or ()), *(pod_spec.containers or ())
    return tagged(tuple(each.image for each in containers if each.image))


@lru_cache(_MOST_TEMPLATES)
def tagged(images: Images) -> Images:
    """Images as nodes name them: with a tag."""
    return tuple(each if _has_tag(each) else f"{each}:latest" for each in images)


def _has_tag(image: str) -> bool:
    """Is there a tag, or a digest? The colon before the last slash is that of a port."""
    return ":" in image.rpartition("/")[2]


def _with_volumes(rules: PodRules, pod_spec: PodSpec, manifest: Manifest) -> PodRules:
    """The rules of a pod together with what it mounts, which is seldom the same for two pods."""
    if not pod_spec.volumes:
        return rules
    uid = manifest.metadata.uid
    uses = volume_uses(pod_spec, manifest.namespace, manifest.name, uid)
    return replace(rules, volumes=uses) if uses else rules


def unsupported(pod_spec: PodSpec) -> str:
    """What a pod needs and Aliquot cannot give it, in words; empty if there is nothing.

    Without its devices the kubelet would not start the pod, and the room would be lost.
    """
    claims = [str(each.get("name") or "") for each in pod_spec.resource_claims or ()]
    if not claims:
        return ""
    listed = ", ".join(claims)
    named = f"resource claim {listed}" if len(claims) == 1 else f"resource claims {listed}"
    return (
        f"{named}: no devices are allocated for claims (dynamic resource allocation); ask for an "
        "extended resource, or leave the pod to another scheduler"
    )


def devices(manifest: Manifest, cards: Cards) -> tuple[str, ...]:
    """The GPUs that a pod runs on, by its annotation; none while it waits."""
    if not cards.shared or not spec(manifest).node_name:
        return ()
    return gpu_annotations.devices(manifest.metadata, manifest)


def spec(manifest: Manifest) -> PodSpec:
    """The spec of a pod; an empty one if it has none."""
    content = manifest.content
    assert isinstance(content, PodWire)
    return content.spec or PodSpec()


def status(manifest: Manifest) -> PodStatus:
    """The status of a pod; an empty one if it has none."""
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
    """What a pod requests and where it may run; `field` is the field of the spec.

    Requests for single GPUs are read where `metadata` are given, in which they are annotations.
    """
    if spec is None or not spec.containers:
        manifest.refuse(f"{field}.containers", "a pod needs at least one container")
        spec = spec or PodSpec()
    held = _phases(spec, status, manifest, field)
    asked = {name: amount for name, amount in most(held).items() if amount}
    asked["pods"] = 1
    requests = tuple(sorted(asked.items()))
    gpu = None
    if cards.shared and metadata is not None:
        annotated = gpu_annotations.read_request(metadata, manifest)
        gpu = gpu_requests.gpu_ask(annotated, held, cards.default, defaults)
    constraints = _node_constraints(spec, manifest, field)
    return Shape(requests, constraints, cards.charges(requests, held), gpu)


def finished(status: PodStatus | None) -> bool:
    """Has the pod ended, so that it holds no resources any more?"""
    return status is not None and status.phase in FINISHED


def _phases(spec: PodSpec, status: PodStatus | None, manifest: Manifest, field: str) -> list[Sums]:
    """What a pod holds while each init container runs, and then; with overhead.

    A container that is being resized counts with the larger of what is allocated and what it
    requests. Pod-level resources override the sum of the containers.
    """
    allocated = _allocated(status or PodStatus(), manifest)
    running: Sums = {}
    for index, container in enumerate(spec.containers or []):
        asked = _requests(container.resources, manifest, f"{field}.containers[{index}].resources")
        add(running, larger(asked, allocated.get(container.name, {})))
    found = phases(running, _init_containers(spec, allocated, manifest, field))
    whole = _whole_pod(spec.resources, most(found), manifest, f"{field}.resources")
    overhead = _read(spec.overhead, manifest, f"{field}.overhead")
    for phase in found:
        phase.update(whole)
        add(phase, overhead)
    return found


def _allocated(status: PodStatus, manifest: Manifest) -> dict[str, Sums]:
    """What is allocated to each container, as its node reports it."""
    found: dict[str, Sums] = {}
    for field, statuses in (
        ("status.containerStatuses", status.container_statuses),
        ("status.initContainerStatuses", status.init_container_statuses),
    ):
        for each in statuses or []:
            resources = each.resources or ResourceRequirements()
            found[each.name] = larger(
                _read(each.allocated_resources, manifest, f"{field}.allocatedResources"),
                _read(resources.requests, manifest, f"{field}.resources.requests"),
            )
    return found


def _init_containers(
    spec: PodSpec, allocated: Mapping[str, Sums], manifest: Manifest, field: str
) -> Iterator[tuple[Sums, bool]]:
    """What each init container holds, and whether it is a sidecar."""
    for index, container in enumerate(spec.init_containers or []):
        place = f"{field}.initContainers[{index}].resources"
        asked = _requests(container.resources, manifest, place)
        if _is_sidecar(container):
            asked = larger(asked, allocated.get(container.name, {}))
        yield asked, _is_sidecar(container)


def _is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def _requests(resources: ResourceRequirements | None, manifest: Manifest, field: str) -> Sums:
    """Requests; a resource without a request has its limit, as the API server defaults it."""
    if resources is None:
        return {}
    asked = _read(resources.requests, manifest, f"{field}.requests")
    limits = _read(resources.limits, manifest, f"{field}.limits")
    for name, limit in limits.items():
        if asked.setdefault(name, limit) > limit:
            numbers = (
                f"requests {quantity.text(name, asked[name])}, limits {quantity.text(name, limit)}"
            )
            manifest.refuse(f"{field}.requests", f"{name} is above its limit: {numbers}")
    return asked


def _read(quantities: Quantities | None, manifest: Manifest, field: str) -> Sums:
    """Amounts of resources that a container can request; GPU memory and models are not."""
    found = amounts.read(quantities, manifest, field)
    for name in [name for name in found if is_model(name)]:
        if found.pop(name):
            problem = (
                "is a unit of quotas that no node has; ask for GPUs, and select nodes of the model"
            )
            manifest.refuse(f"{field}[{name}]", problem)
    if found.pop(GPU_MEMORY, 0):
        where = f"{field}[{as_written(GPU_MEMORY, quantities)}]"
        problem = "is a unit of quotas that no node has; ask for GPUs, or slices of them, instead"
        manifest.refuse(where, problem)
    return found


def _whole_pod(
    resources: ResourceRequirements | None, summed: Sums, manifest: Manifest, field: str
) -> Sums:
    """Pod-level requests; a pod-level limit counts only where no container requests."""
    if resources is None:
        return {}
    explicit = set(resources.requests or {})
    asked = _requests(resources, manifest, field)
    return {
        name: amount for name, amount in asked.items() if name in explicit or name not in summed
    }


def _node_constraints(spec: PodSpec, manifest: Manifest, field: str) -> NodeConstraints:
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required: tuple[Term, ...] | None = None
    preferred: tuple[tuple[int, Term], ...] = ()
    if affinity is not None:
        at = f"{field}.affinity.nodeAffinity"
        needed = affinity.required_during_scheduling_ignored_during_execution
        if needed is not None:
            required = tuple(
                node_term(term, manifest, at) for term in needed.node_selector_terms or []
            )
        preferred = tuple(
            (each.weight, node_term(each.preference or SelectorTerm(), manifest, at))
            for each in affinity.preferred_during_scheduling_ignored_during_execution or []
        )
    return NodeConstraints(
        selector=tuple(
            sorted(text_map(spec.node_selector, manifest, f"{field}.nodeSelector").items())
        ),
        required=required,
        preferred=preferred,
        tolerations=_tolerations(spec, manifest, field),
    )


def _tolerations(spec: PodSpec, manifest: Manifest, field: str) -> tuple[Toleration, ...]:
    found = []
    for each in spec.tolerations or []:
        toleration = Toleration(
            each.key or "", each.operator or "Equal", each.value or "", each.effect or ""
        )
        if toleration.operator not in ("Equal", "Exists"):
            problem = f"operator {each.operator!r} is neither Equal nor Exists"
            manifest.refuse(f"{field}.tolerations", problem)
        if toleration.effect not in _EFFECTS:
            problem = f"effect {each.effect!r} is not an effect of a taint"
            manifest.refuse(f"{field}.tolerations", problem)
        found.append(toleration)
    return tuple(found)
