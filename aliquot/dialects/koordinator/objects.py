"""An ElasticQuotaProfile as it stands in JSON: a pool of nodes, and the root quota of its tree.

Short because it stands alone: Koordinator's quotas are KEP-9's, with labels and annotations.
"""

from typing import Any

import msgspec

from aliquot.dialects.core.objects import LabelSelector, Metadata, Wire


class ProfileSpec(Wire):
    """The spec of an ElasticQuotaProfile."""

    quota_name: str = ""
    quota_labels: dict[str, Any] | None = None
    resource_ratio: str | None = None
    node_selector: LabelSelector | None = None


class ProfileWire(Wire):
    """An ElasticQuotaProfile."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: ProfileSpec | None = None
