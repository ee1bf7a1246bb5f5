"""An ElasticQuota as it stands in JSON.

Short because it stands alone: the groups of KEP-9 (which Koordinator uses as well) and of nos have
the same fields, and all are read as this.
"""

from typing import Any

import msgspec

from aliquot.dialects.core.objects import Metadata, Quantities, Wire


class QuotaSpec(Wire):
    """The spec of an ElasticQuota."""

    min: Quantities | None = None
    max: Quantities | None = None


class QuotaWire(Wire):
    """An ElasticQuota, of any of the groups that have one."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: QuotaSpec | None = None
    status: dict[str, Any] | None = None
