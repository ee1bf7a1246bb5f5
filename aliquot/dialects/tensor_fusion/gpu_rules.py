"""What is worth a word about GPUs, and about pods that ask for them: one function a rule.

A rule yields findings; it never raises and never changes anything. Those of quotas on GPUs:
`gpu_quota_rules`.
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
from aliquot.engine import Device, Node

BEAR_ON_GPUS = {KIND, gpus.KIND, "Node", "Namespace"}
"""The kinds of objects that decide which GPUs there are, and who may use them."""


def check_gpus(
    objects: Collection[Manifest], cards: Cards, all_nodes: bool = True
) -> Iterator[Finding]:
    """Everything there is to say about GPUs, and quotas on them, in the light of all objects."""
    if not cards.shared:
        return
    yield from one_gpu_quota_a_namespace(objects)
    nodes = [(each, node(each, cards)) for each in objects if each.kind == "Node"]
    given = [(each, gpus.device(each)) for each in objects if each.kind == gpus.KIND]
    if all_nodes:
        yield from gpus_are_somewhere(given, nodes)
    spoken_of = {device.node for _, device in given}
    for manifest, each in nodes:
        if each.name not in spoken_of:
            yield from cards_that_are_known(manifest, each, cards)


def check_gpu_requests(manifest: Manifest) -> Iterator[Finding]:
    """What is worth a word about what pods ask for of GPUs."""
    for view in template_views(manifest):
        yield from keys_that_count(manifest, view)
        yield from one_manner_of_asking(manifest, view)
        yield from only_what_is_considered(manifest, view)


def gpus_are_somewhere(
    given: Collection[tuple[Manifest, Device]], nodes: Collection[tuple[Manifest, Node]]
) -> Iterator[Finding]:
    """A GPU is of use on a node that is there."""
    names = {dict(each.labels)[HOSTNAME] for _, each in nodes} | {each.name for _, each in nodes}
    where = f"status.nodeSelector[{HOSTNAME}]"
    for manifest, device in given:
        if not device.node:
            problem = "is missing: nobody can run on a GPU that is nowhere"
            yield manifest.finding("warning", where, problem)
        elif device.node not in names:
            problem = f"there is no node {device.node}; nobody runs on this GPU until it comes"
            yield manifest.finding("warning", where, problem)


def cards_that_are_known(manifest: Manifest, each: Node, cards: Cards) -> Iterator[Finding]:
    """Nobody who asks for TFLOPs starts on a card of which it is not known what it computes."""
    has, labels = dict(each.allocatable), dict(each.labels)
    number = has.get(CARD, 0)
    if number and cards.compute and not compute(labels):
        said = to_text(labels.get(MODEL_LABEL))
        known = f"{said!r} is no model that is known here" if said else "is missing"
        problem = f"{known}: its GPUs count 0 TFLOPs; write GPU objects, or another label"
        yield manifest.finding("warning", f"metadata.labels[{MODEL_LABEL}]", problem)
    if number > MOST:
        problem = f"{number} GPUs on one node: only {MOST} of them are told apart"
        yield manifest.finding("warning", f"status.allocatable[{CARD}]", problem)


def keys_that_count(manifest: Manifest, view: PodTemplateView) -> Iterator[Finding]:
    """A slip in a key would ask for nothing."""
    for key, meant in unknown_keys(view.metadata):
        hint = f"; did you mean {meant}?" if meant else ""
        where = f"{view.metadata_field}.annotations[{key}]"
        yield manifest.finding("warning", where, f"is not known here and has no effect{hint}")


def one_manner_of_asking(manifest: Manifest, view: PodTemplateView) -> Iterator[Finding]:
    """Who asks by annotation has said it all."""
    if view.spec is None or not requests_gpus(view.metadata):
        return
    for word, containers in (
        ("containers", view.spec.containers),
        ("initContainers", view.spec.init_containers),
    ):
        for index, container in enumerate(containers or []):
            said = container.resources
            named = {**(said.requests or {}), **(said.limits or {})} if said is not None else {}
            for resource in filter(is_gpu, named):
                where = f"{view.spec_field}.{word}[{index}].resources"
                problem = f"{resource} takes room on the node only: annotations of {PREFIX[:-1]}"
                yield manifest.finding("warning", where, f"{problem} say what is asked of GPUs")


def only_what_is_considered(manifest: Manifest, view: PodTemplateView) -> Iterator[Finding]:
    """Wishes that have no effect here yet."""
    written = view.metadata.annotations or {}
    if to_text(written.get(f"{PREFIX}isolation")) == "partitioned":
        where = f"{view.metadata_field}.annotations[{PREFIX}isolation]"
        problem = "partitions are not considered yet: the GPU is shared as by hard"
        yield manifest.finding("warning", where, problem)
