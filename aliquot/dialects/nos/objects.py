"""A CompositeElasticQuota of nos as it stands in JSON; nos' ElasticQuota is read as KEP-9's."""

from typing import Any

import msgspec

from aliquot.dialects.core.objects import Metadata, Quantities, Wire


class CompositeQuotaSpec(Wire):
    """The spec of a CompositeElasticQuota."""

    namespaces: list[str] | None = None
    min: Quantities | None = None
    max: Quantities | None = None


class CompositeQuotaWire(Wire):
    """A CompositeElasticQuota: one quota over several namespaces."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: CompositeQuotaSpec | None = None
    status: dict[str, Any] | None = None
