"""Jobs as they stand in JSON. What the spec of a framework's job says is read by its table.

Of a Job of Kubernetes, a cluster has many: of these no more is kept than says whether it is a gang.
"""

from typing import Any

import msgspec

from aliquot.dialects.core.objects import Metadata, Wire


class JobWire(Wire):
    """A PyTorchJob, RayCluster, JobSet...: a job whose controller makes several kinds of pods."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: dict[str, Any] | None = None


class MarkedTemplate(Wire):
    """What a Job's pod template says of its pods beside their spec."""

    metadata: Metadata | None = None


class PlainJobSpec(Wire):
    """How many pods a Job of Kubernetes has at once."""

    parallelism: int | None = None
    completions: int | None = None
    suspend: bool | None = None
    template: MarkedTemplate | None = None


class PlainJobWire(Wire):
    """A Job of Kubernetes, of which only matters whether its pods are a gang, and of how many."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: PlainJobSpec | None = None
