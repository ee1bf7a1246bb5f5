"""Rules for one object by itself: one function a rule.

`check_object` also runs the rules of the dialects: `kep9.rules` and `koordinator.rules` for quotas,
`volcano.queue_rules`, `volcano.gang_rules`, `tensor_fusion.quota_rules` and `gpu_rules`. Why a pod
can never start (`above_max`, `too_large`) is worked out here for `unschedulable`.

A rule yields findings; it never raises and never changes anything. It is given only objects that
could be read. `aliquot simulate` refuses to start on an error and prints warnings;
`aliquot validate` prints all findings.
"""

from collections.abc import Iterator, Sequence

from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.labels import to_text, unquoted_keys
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import NodeWire, PodSpec, ResourceQuotaWire
from aliquot.dialects.core.pod_templates import template_views
from aliquot.dialects.core.pods import unsupported
from aliquot.dialects.kep9.objects import QuotaWire
from aliquot.dialects.kep9.rules import check_quota
from aliquot.dialects.koordinator.objects import ProfileWire
from aliquot.dialects.koordinator.rules import check_member
from aliquot.dialects.koordinator.tree_rules import check_profile
from aliquot.dialects.nos.cards import MEMORY_LABEL, Cards
from aliquot.dialects.nos.objects import CompositeQuotaWire
from aliquot.dialects.tensor_fusion.gpu_rules import check_gpu_requests
from aliquot.dialects.tensor_fusion.objects import GpuQuotaWire
from aliquot.dialects.tensor_fusion.quota_rules import check_gpu_quota
from aliquot.dialects.volcano import gang_rules
from aliquot.dialects.volcano.namespace_weights import readable_namespace_weight
from aliquot.dialects.volcano.objects import GangJobWire, PodGroupWire, QueueWire
from aliquot.dialects.volcano.queue_rules import check_queue
from aliquot.engine import Amounts, Node, Quota, Shape, node_refusal, quantity

Models = tuple[tuple[str, str], ...]
"""Resources of cards, each with the resource of their model."""


def check_object(manifest: Manifest, cards: Cards) -> Iterator[Finding]:
    """Errors and warnings about one object by itself."""
    yield from labels_are_text(manifest)
    yield from gang_rules.check_member(manifest)
    yield from gang_rules.check_waiting_times(manifest)
    yield from check_gpu_requests(manifest)
    for view in template_views(manifest):
        yield from supported_fields(manifest, view.spec, view.spec_field)
    match manifest.content:
        case QuotaWire() | CompositeQuotaWire():
            yield from check_quota(manifest)
            yield from check_member(manifest)
        case ProfileWire():
            yield from check_profile(manifest)
        case QueueWire():
            yield from check_queue(manifest)
        case PodGroupWire():
            yield from gang_rules.check_gang(manifest)
        case GangJobWire():
            yield from gang_rules.check_job(manifest)
        case GpuQuotaWire():
            yield from check_gpu_quota(manifest)
        case ResourceQuotaWire():
            yield from readable_namespace_weight(manifest)
        case NodeWire():
            yield from readable_memory_label(manifest, cards)


def labels_are_text(manifest: Manifest) -> Iterator[Finding]:
    """Warn of labels and annotations that are not text, which an API server refuses."""
    places = {"metadata": manifest.metadata}
    places.update((each.metadata_field, each.metadata) for each in template_views(manifest))
    for field, metadata in places.items():
        for word, values in (("labels", metadata.labels), ("annotations", metadata.annotations)):
            for key in unquoted_keys(values):
                problem = "is not text (put it in quotes); an API server would refuse it"
                yield manifest.finding("warning", f"{field}.{word}[{key}]", problem)


def supported_fields(manifest: Manifest, spec: PodSpec | None, field: str) -> Iterator[Finding]:
    """Warn of what a pod needs and cannot have here."""
    if spec is not None and (why := unsupported(spec)):
        yield can_never_start(manifest, f"{field}.resourceClaims", why)


def readable_memory_label(manifest: Manifest, cards: Cards) -> Iterator[Finding]:
    """Warn of a node whose label of its cards' memory is no number: the default counts."""
    labels = manifest.metadata.labels or {}
    if cards.unreadable(labels):
        problem = f"{to_text(labels[MEMORY_LABEL])!r} is no number of MiB; its cards count as"
        where = f"metadata.labels[{MEMORY_LABEL}]"
        yield manifest.finding("warning", where, f"{problem} {cards.default} GB each")


def can_never_start(manifest: Manifest, field: str, why: str) -> Finding:
    """The warning that a pod can never start."""
    return manifest.finding("warning", field, f"can never start: {why}")


def above_max(shape: Shape, bounds: Quota, nodes: Sequence[Node]) -> str | None:
    """Why a pod exceeds its quota's max on every node that could hold it; None if it does not."""
    charges = dict(shape.charges)
    by_default = charges.pop("", shape.requests)
    by_model = any(each.models for each in nodes)
    classes = _classes(shape, nodes) if charges or by_model else {("", ())}
    reasons = [
        _above_max(_with_models(charges.get(name, by_default), shape, models), bounds)
        for name, models in sorted(classes)
    ]
    return None if None in reasons else reasons[0]


def _classes(shape: Shape, nodes: Sequence[Node]) -> set[tuple[str, Models]]:
    """The classes of the nodes that could hold a pod when empty; the default one if none."""
    large_enough = (each for each in nodes if _holds(each.allocatable, shape))
    found = {
        (each.node_class, each.models)
        for each in large_enough
        if node_refusal(shape.constraints, each) is None
    }
    return found or {("", ())}


def _with_models(charge: Amounts, shape: Shape, models: Models) -> Amounts:
    """The charge on nodes with cards of these models."""
    asked = dict(shape.requests)
    return (*charge, *((model, asked[cards]) for cards, model in models if cards in asked))


def _above_max(charge: Amounts, bounds: Quota) -> str | None:
    ceiling = dict(bounds.max)
    for resource, asked in charge:
        high = ceiling.get(resource, quantity.LIMIT)
        if asked > high:
            wanted, most = quantity.text(resource, asked), quantity.text(resource, high)
            numbers = f"{wanted} {resource}, max is {most}"
            return f"asks for {numbers} in quota {bounds.name}"
    return None


def too_large(shape: Shape, nodes: Sequence[Node]) -> str | None:
    """Why no node could hold a pod even when empty; None if one could."""
    sizes: dict[Amounts, list[Node]] = {}
    for each in nodes:
        sizes.setdefault(each.allocatable, []).append(each)
    large_enough = [size for size in sizes if _holds(size, shape)]
    if any(
        node_refusal(shape.constraints, each) is None
        for size in large_enough
        for each in sizes[size]
    ):
        return None
    for resource, asked in shape.requests:
        most = max(dict(size).get(resource, 0) for size in sizes)
        if asked > most:
            numbers = f"{quantity.text(resource, asked)} {resource}, no node has more than"
            return f"asks for {numbers} {quantity.text(resource, most)}"
    if not large_enough:
        return "no single node has all that it asks for"
    return "its selectors or the nodes' taints keep it off every node that is large enough"


def _holds(size: Amounts, shape: Shape) -> bool:
    has = dict(size)
    return all(asked <= has.get(resource, 0) for resource, asked in shape.requests)
