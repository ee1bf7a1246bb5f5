"""Is an object valid by itself? Every field that is ever read is read, so that an error is raised.

Pods and workloads depend on other objects, and are checked by the store.
"""

from aliquot.dialects.core import budgets, lifetimes, nodes, simulation_annotations
from aliquot.dialects.core.label_selectors import selection
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import (
    BudgetWire,
    Metadata,
    NodeWire,
    PlainWire,
    PriorityClassWire,
    ResourceQuotaWire,
    SelectionWire,
)
from aliquot.dialects.core.storage import volumes
from aliquot.dialects.core.times import timestamp
from aliquot.dialects.kep9 import quotas
from aliquot.dialects.kep9.objects import QuotaWire
from aliquot.dialects.koordinator import profiles
from aliquot.dialects.koordinator.objects import ProfileWire
from aliquot.dialects.nos.cards import Cards
from aliquot.dialects.nos.objects import CompositeQuotaWire
from aliquot.dialects.priorities import check_range
from aliquot.dialects.tensor_fusion import derived_gpus, gpus
from aliquot.dialects.tensor_fusion import quotas as gpu_quotas
from aliquot.dialects.tensor_fusion.objects import GpuQuotaWire, GpuWire
from aliquot.dialects.volcano import gangs, hyper_nodes, queues
from aliquot.dialects.volcano import keys as volcano
from aliquot.dialects.volcano.objects import HyperNodeWire, PodGroupWire, QueueWire


def check_by_itself(manifest: Manifest) -> None:
    """Raise `InputError` for an object that is invalid whatever other objects exist."""
    match manifest.content:
        case QueueWire():
            queues.queue(manifest)
        case PodGroupWire():
            gangs.gang(manifest)
        case HyperNodeWire():
            hyper_nodes.check(manifest)
        case PriorityClassWire(value=None):
            manifest.refuse("value", "is missing")
        case PriorityClassWire(value=value):
            check_range(value, manifest, "value")
        case BudgetWire():
            budgets.budget(manifest)
        case NodeWire():
            nodes.node(manifest, Cards())
            derived_gpus.domains(manifest)
        case QuotaWire() | CompositeQuotaWire():
            quotas.quota(manifest)
        case ProfileWire():
            profiles.profile(manifest)
        case ResourceQuotaWire():
            quotas.hard(manifest)
        case GpuQuotaWire():
            gpu_quotas.quota(manifest)
        case GpuWire():
            gpus.device(manifest)
        case SelectionWire():
            selection(manifest)
        case _ if manifest.kind in volumes.KINDS:
            volumes.storage_object(manifest)
        case PlainWire():
            volcano.queue_named(manifest.metadata, manifest)
    check_timestamp(manifest.metadata, manifest, "metadata")
    simulation_annotations.duration_of(manifest)
    simulation_annotations.grace_of(manifest)
    lifetimes.check(manifest)


def check_timestamp(metadata: Metadata, manifest: Manifest, field: str) -> None:
    """Refuse a creationTimestamp that is none."""
    place = f"{manifest.place}: {manifest.title}"
    where = f"{field}.creationTimestamp"
    manifest.attempt(lambda: timestamp(metadata.creation_timestamp, place, where))
