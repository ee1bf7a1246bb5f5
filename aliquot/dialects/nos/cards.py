"""GPU cards: the GB of a card by its node, and what pods are charged on it.

Nodes are in classes by the GB of their cards, with one class for each size other than the default,
because a pod that requests a card is charged its GB. The sizes must be known before pods are read.
Where no quota names GPU memory it is not charged, and all nodes are in one class.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from aliquot.dialects.configuration import Gpu
from aliquot.dialects.core.gpu_models import GpuModels, gpu_models, is_model
from aliquot.dialects.core.labels import to_text
from aliquot.dialects.core.manifest import KEP9_GROUPS, Manifest
from aliquot.dialects.core.objects import NodeWire, Quantities
from aliquot.dialects.kep9.objects import QuotaWire
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.dialects.nos.gpu_memory import SPELLINGS, gigabytes, is_gpu, peak
from aliquot.dialects.nos.objects import CompositeQuotaWire
from aliquot.dialects.tensor_fusion.sharing import counts_compute, is_shared
from aliquot.dialects.volcano.objects import QueueWire
from aliquot.dialects.volcano.queues import bounds
from aliquot.engine import GPU_MEMORY, Amounts, add_amounts

MODEL_LABEL = "nvidia.com/gpu.product"
MEMORY_LABEL = "nvidia.com/gpu.memory"

_MIB_IN_A_GB = 1024
_BYTES_IN_A_MIB = 2**20
_MOST_DIGITS = 9
"""Digits of a label in MiB: below 10**9 MiB, a petabyte, its bytes are far within int64."""

Labels = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Cards:
    """The GB of a card, by default and by model, and what quotas count of GPUs."""

    default: int = 32
    by_model: Mapping[str, int] = field(default_factory=dict)
    sizes: tuple[int, ...] = ()
    """The sizes other than the default, of all nodes of the input, also those that come later."""
    counted: bool = False
    """Does any quota name GPU memory?"""
    shared: bool = False
    """Are single GPUs shared (see `tensor_fusion.sharing`)?"""
    compute: bool = False
    """Does a pod request TFLOPs, or a quota bound them?"""
    models: GpuModels = field(default_factory=GpuModels)
    """The models of cards that quotas name."""

    def size(self, labels: Labels) -> int:
        """The GB of a card on a node with these labels."""
        by_model = self.by_model.get(to_text(labels.get(MODEL_LABEL)))
        return by_model or _labelled(labels) or self.default

    def memory(self, labels: Labels) -> int:
        """The bytes of a card on a node with these labels, exact to its label's MiB."""
        by_model = self.by_model.get(to_text(labels.get(MODEL_LABEL)))
        mebibytes = None if by_model else _mebibytes(labels)
        return (mebibytes or (by_model or self.default) * _MIB_IN_A_GB) * _BYTES_IN_A_MIB

    def node_class(self, labels: Labels) -> str:
        """The class of a node with these labels, by its cards' GB; empty for the default size."""
        size = self.size(labels) if self.counted else self.default
        return "" if size == self.default else _class_name(size)

    def of_node(self, has: Mapping[str, int], labels: Labels) -> dict[str, int]:
        """The GPU memory and the cards by model of a node, as far as quotas count them."""
        total = gigabytes(has, self.size(labels)) if self.counted else 0
        memory = {GPU_MEMORY: total} if total else {}
        return {**memory, **self.models.amounts(has, labels)}

    def charges(
        self, requests: Amounts, phases: Sequence[Mapping[str, int]]
    ) -> tuple[tuple[str, Amounts], ...]:
        """What quotas are charged for a pod, by node class: its requests, and GPU memory.

        Empty where that equals the requests. Of the classes, only those are given on which the
        charge differs from that on the default class.
        """
        if not self.counted or not any(is_gpu(resource) for resource, _ in requests):
            return ()
        by_default = peak(phases, self.default)
        amounts = {_class_name(size): peak(phases, size) for size in self.sizes}
        others = {name: amount for name, amount in amounts.items() if amount != by_default}
        return tuple(
            (name, add_amounts(requests, ((GPU_MEMORY, amount),)))
            for name, amount in {"": by_default, **others}.items()
        )

    def unreadable(self, labels: Labels) -> bool:
        """Has a node a label with its cards' memory that would count, but is no number of MiB?"""
        known = to_text(labels.get(MODEL_LABEL)) in self.by_model
        return self.counted and MEMORY_LABEL in labels and not known and not _labelled(labels)


def cards(settings: Gpu, manifests: Iterable[Manifest]) -> Cards:
    """The cards as configured, with what all objects, also those that come later, say of GPUs."""
    manifests = list(manifests)
    shared = is_shared(manifests)
    bare = Cards(
        settings.memory_gb,
        settings.memory_gb_by_model,
        shared=shared,
        compute=shared and counts_compute(manifests),
        models=gpu_models(
            settings.models,
            {name for each in manifests for name in _names(each) if is_model(name)},
            _labels_of_nodes(manifests),
        ),
    )
    if not any(_names_gpu_memory(each) for each in manifests):
        return bare
    sizes = {bare.size(labels) for labels in _labels_of_nodes(manifests)} - {bare.default}
    return replace(bare, sizes=tuple(sorted(sizes)), counted=True)


def _labels_of_nodes(manifests: Iterable[Manifest]) -> Iterator[Labels]:
    return (each.metadata.labels or {} for each in manifests if isinstance(each.content, NodeWire))


def _names_gpu_memory(manifest: Manifest) -> bool:
    return any(name in SPELLINGS for name in _bounds(manifest))


def _names(manifest: Manifest) -> Iterator[str]:
    """The resources that a quota or queue names, also in its weight."""
    yield from _bounds(manifest)
    if isinstance(manifest.content, QuotaWire) and manifest.group in KEP9_GROUPS:
        yield from koordinator.weighed(manifest)


def _bounds(manifest: Manifest) -> Iterator[str]:
    """The resources that a quota or queue bounds or guarantees."""
    content = manifest.content
    written: Iterable[Quantities | None] = ()
    if isinstance(content, QueueWire):
        written = bounds(manifest).values()
    elif isinstance(content, QuotaWire | CompositeQuotaWire) and content.spec is not None:
        written = (content.spec.min, content.spec.max)
    return (name for each in written for name in each or ())


def _labelled(labels: Labels) -> int | None:
    """The label's MiB as whole GB, rounded; None if it is no number, or rounds to 0."""
    written = _mebibytes(labels)
    return None if written is None else (written + _MIB_IN_A_GB // 2) // _MIB_IN_A_GB or None


def _mebibytes(labels: Labels) -> int | None:
    written = to_text(labels.get(MEMORY_LABEL))
    if not (written.isascii() and written.isdigit()) or len(written) > _MOST_DIGITS:
        return None
    return int(written)


def _class_name(size: int) -> str:
    return f"{size}GB"
