"""ElasticQuotas and CompositeElasticQuotas of every group, each by itself, as the engine's quotas.

`quota_index` makes one tree of them. What a core ResourceQuota allows is read here as well, because
quotas are compared with it.
"""

from aliquot.dialects.core import amounts
from aliquot.dialects.core.labels import text_map
from aliquot.dialects.core.manifest import (
    ALIQUOT_GROUP,
    KEP9_GROUPS,
    Manifest,
    once,
    refuse_namespace,
)
from aliquot.dialects.core.objects import ResourceQuotaSpec, ResourceQuotaWire
from aliquot.dialects.kep9.objects import QuotaSpec, QuotaWire
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.dialects.nos.gpu_memory import canonical
from aliquot.dialects.nos.objects import CompositeQuotaSpec, CompositeQuotaWire
from aliquot.engine import Quota, quantity

KINDS = ("ElasticQuota", "CompositeElasticQuota")
"""The kinds of objects that become the engine's quotas, besides Volcano's Queue."""

LENDING_GROUP = f"{ALIQUOT_GROUP}/lending-group"


@once
def quota(manifest: Manifest) -> Quota:
    """The engine's quota of one object, without its parent (see `quota_index`)."""
    bounds = spec(manifest)
    keys = koordinator.keys(manifest) if manifest.group in KEP9_GROUPS else koordinator.Keys()
    return Quota(
        name=quota_name(manifest),
        min=tuple(sorted(amounts.read(bounds.min, manifest, "spec.min").items())),
        max=tuple(sorted(amounts.read(bounds.max, manifest, "spec.max").items())),
        weight=keys.weight,
        lend=keys.lend,
        namespaces=frozenset(namespaces(manifest)),
        group=_lending_group(manifest),
        is_parent=keys.is_parent,
    )


def spec(manifest: Manifest) -> QuotaSpec | CompositeQuotaSpec:
    """The spec of a quota; an empty one if it has none."""
    read = manifest.content
    assert isinstance(read, QuotaWire | CompositeQuotaWire)
    return read.spec or QuotaSpec()


def namespaces(manifest: Manifest) -> list[str]:
    """The namespaces that a quota lists; for an ElasticQuota of nos, its own.

    A CompositeElasticQuota does not cover its own namespace unless it lists it. Whether an
    ElasticQuota of KEP-9 and Koordinator covers its own is decided in `quota_index`.
    """
    if manifest.group in KEP9_GROUPS:
        return list(koordinator.keys(manifest).namespaces)
    if not isinstance(manifest.content, CompositeQuotaWire):
        return [manifest.namespace]
    written = (manifest.content.spec or CompositeQuotaSpec()).namespaces
    if not written:
        manifest.refuse("spec.namespaces", "must name at least one namespace")
    for index, name in enumerate(written or ()):
        refuse_namespace(name, manifest, f"spec.namespaces[{index}]")
    return written or []


def quota_name(manifest: Manifest) -> str:
    """The engine's name of a quota: `namespace/name`."""
    return f"{manifest.namespace}/{manifest.name}"


def _lending_group(manifest: Manifest) -> str:
    labels = manifest.metadata.labels or {}
    own = {key: value for key, value in labels.items() if key == LENDING_GROUP}
    return text_map(own, manifest, "metadata.labels").get(LENDING_GROUP, "")


def has_koordinator_keys(manifest: Manifest) -> bool:
    """Does it carry a label or annotation of Koordinator?"""
    metadata = manifest.metadata
    return koordinator.has_keys((metadata.labels, metadata.annotations))


@once
def hard(manifest: Manifest) -> dict[str, int]:
    """What a core ResourceQuota lets the pods of its namespace request, by resource.

    `cpu` and `requests.cpu` are two names of one resource; the lower value holds. Volcano's
    namespace weights, which stand among them, are left out.
    """
    read = manifest.content
    assert isinstance(read, ResourceQuotaWire)
    spec = read.spec or ResourceQuotaSpec()
    written = {k: v for k, v in (spec.hard or {}).items() if "volcano.sh/" not in k}
    amounts.read(written, manifest, "spec.hard")
    lowest: dict[str, int] = {}
    for key, value in written.items() if not manifest.is_refused else ():
        resource = canonical(key.removeprefix("requests."))
        limit = quantity.amount(resource, str(value))
        lowest[resource] = min(limit, lowest.get(resource, limit))
    return lowest
