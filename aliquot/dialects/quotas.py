"""Quota objects of every dialect, as nodes of the one quota tree."""

from aliquot.dialects import amounts
from aliquot.dialects.manifest import KOORDINATOR_PREFIX, Manifest
from aliquot.dialects.wire import QuotaSpec, QuotaWire, ResourceQuotaSpec, ResourceQuotaWire
from aliquot.engine.objects import Quota
from aliquot.engine.quantity import amount


def quota(manifest: Manifest) -> Quota:
    """An ElasticQuota: min and max of the pods in its namespace."""
    read = manifest.content
    assert isinstance(read, QuotaWire)
    spec = read.spec or QuotaSpec()
    return Quota(
        name=quota_name(manifest),
        min=tuple(sorted(amounts.read(spec.min, manifest, "spec.min").items())),
        max=tuple(sorted(amounts.read(spec.max, manifest, "spec.max").items())),
        namespaces=frozenset({manifest.namespace}),
    )


def quota_name(manifest: Manifest) -> str:
    """What a quota goes by everywhere: `namespace/name`."""
    return f"{manifest.namespace}/{manifest.name}"


def has_koordinator_keys(manifest: Manifest) -> bool:
    """Is it written for Koordinator?"""
    metadata = manifest.metadata
    keys = (*(metadata.labels or ()), *(metadata.annotations or ()))
    return any(key.startswith(KOORDINATOR_PREFIX) for key in keys)


def hard(manifest: Manifest) -> dict[str, int]:
    """What a core ResourceQuota lets the pods of its namespace ask for, by resource.

    `cpu` and `requests.cpu` are two names for one thing; the lower one holds. Weights that Volcano
    keeps here are no amounts.
    """
    read = manifest.content
    assert isinstance(read, ResourceQuotaWire)
    spec = read.spec or ResourceQuotaSpec()
    written = {k: v for k, v in (spec.hard or {}).items() if "volcano.sh/" not in k}
    lowest: dict[str, int] = {}
    for key in amounts.read(written, manifest, "spec.hard"):
        resource = key.removeprefix("requests.")
        limit = amount(resource, str(written[key]))
        lowest[resource] = min(limit, lowest.get(resource, limit))
    return lowest
