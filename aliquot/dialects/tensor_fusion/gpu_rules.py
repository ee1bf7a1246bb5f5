"""Rules for GPUs and for pods that request them: one function a rule.

A rule yields findings; it never raises and never changes anything. Rules for GPUResourceQuotas are
in `quota_rules`.
"""

from collections.abc import Collection, Iterator

from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.labels import to_text
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.nodes import HOSTNAME, node
from aliquot.dialects.core.pod_templates import PodTemplateView, template_views
from aliquot.dialects.nos.cards import MODEL_LABEL, Cards
from aliquot.dialects.nos.gpu_memory import CARD, is_gpu
from aliquot.dialects.tensor_fusion import gpus
from aliquot.dialects.tensor_fusion.annotations import PREFIX, requests_gpus, unknown_keys
from aliquot.dialects.tensor_fusion.derived_gpus import MOST, compute
from aliquot.dialects.tensor_fusion.quota_rules import one_gpu_quota_a_namespace
from aliquot.dialects.tensor_fusion.quotas import KIND
from aliquot.dialects.volcano import declared_gangs
from aliquot.engine import Device, Node

GPU_KINDS = {KIND, gpus.KIND, "Node", "Namespace"}
"""The kinds whose changes can change the result of `check_gpus`."""


def check_gpus(
    objects: Collection[Manifest], cards: Cards, all_nodes: bool = True
) -> Iterator[Finding]:
    """Errors and warnings about GPUs and GPUResourceQuotas, with all objects.

    Without `all_nodes`, some node could not be read, and a GPU's node may be that one.
    """
    if not cards.shared:
        return
    yield from one_gpu_quota_a_namespace(objects)
    nodes = [(each, node(each, cards)) for each in objects if each.kind == "Node"]
    given = [(each, gpus.device(each)) for each in objects if each.kind == gpus.KIND]
    if all_nodes:
        yield from gpus_have_nodes(given, nodes)
    with_gpu_objects = {device.node for _, device in given}
    for manifest, each in nodes:
        if each.name not in with_gpu_objects:
            yield from cards_of_known_model(manifest, each, cards)


def check_gpu_requests(manifest: Manifest) -> Iterator[Finding]:
    """Warnings about what the pods of an object request of GPUs."""
    for view in template_views(manifest):
        yield from known_annotations(manifest, view)
        yield from annotations_or_resources(manifest, view)
        yield from ignored_annotations(manifest, view)


def gpus_have_nodes(
    given: Collection[tuple[Manifest, Device]], nodes: Collection[tuple[Manifest, Node]]
) -> Iterator[Finding]:
    """Warn of a GPU without a node, or whose node does not exist: no pod can run on it."""
    names = {dict(each.labels)[HOSTNAME] for _, each in nodes} | {each.name for _, each in nodes}
    where = f"status.nodeSelector[{HOSTNAME}]"
    for manifest, device in given:
        if not device.node:
            problem = "is missing: nobody can run on a GPU that is nowhere"
            yield manifest.finding("warning", where, problem)
        elif device.node not in names:
            problem = f"there is no node {device.node}; nobody runs on this GPU until it comes"
            yield manifest.finding("warning", where, problem)


def cards_of_known_model(manifest: Manifest, each: Node, cards: Cards) -> Iterator[Finding]:
    """Warn of cards of an unknown model, whose 0 TFLOPs fit no pod that requests any."""
    has, labels = dict(each.allocatable), dict(each.labels)
    number = has.get(CARD, 0)
    if number and cards.compute and not compute(labels):
        model = to_text(labels.get(MODEL_LABEL))
        known = f"{model!r} is no model that is known here" if model else "is missing"
        problem = f"{known}: its GPUs count 0 TFLOPs; write GPU objects, or another label"
        yield manifest.finding("warning", f"metadata.labels[{MODEL_LABEL}]", problem)
    if number > MOST:
        problem = f"{number} GPUs on one node: only {MOST} of them are told apart"
        yield manifest.finding("warning", f"status.allocatable[{CARD}]", problem)


def known_annotations(manifest: Manifest, view: PodTemplateView) -> Iterator[Finding]:
    """Warn of an annotation that looks like a request but is unknown and has no effect."""
    for key, meant in unknown_keys(view.metadata):
        hint = f"; did you mean {meant}?" if meant else ""
        where = f"{view.metadata_field}.annotations[{key}]"
        yield manifest.finding("warning", where, f"is not known here and has no effect{hint}")


def annotations_or_resources(manifest: Manifest, view: PodTemplateView) -> Iterator[Finding]:
    """Warn of a pod that requests GPUs by annotation and by resource: the annotation counts."""
    if view.spec is None or not requests_gpus(view.metadata):
        return
    for word, containers in (
        ("containers", view.spec.containers),
        ("initContainers", view.spec.init_containers),
    ):
        for index, container in enumerate(containers or []):
            have = container.resources
            named = {**(have.requests or {}), **(have.limits or {})} if have is not None else {}
            for resource in filter(is_gpu, named):
                where = f"{view.spec_field}.{word}[{index}].resources"
                problem = f"{resource} takes room on the node only: annotations of {PREFIX[:-1]}"
                yield manifest.finding("warning", where, f"{problem} say what is asked of GPUs")


def ignored_annotations(manifest: Manifest, view: PodTemplateView) -> Iterator[Finding]:
    """Warn of annotations that have no effect here yet."""
    written = view.metadata.annotations or {}
    if to_text(written.get(f"{PREFIX}isolation")) == "partitioned":
        where = f"{view.metadata_field}.annotations[{PREFIX}isolation]"
        problem = "partitions are not considered yet: the GPU is shared as by hard"
        yield manifest.finding("warning", where, problem)
    for key in written:
        if key.startswith(f"{PREFIX}gang-") and key not in declared_gangs.READ:
            where = f"{view.metadata_field}.annotations[{key}]"
            problem = "is not considered"
            yield manifest.finding("warning", where, problem)
