"""CustomResourceDefinitions for every object that Aliquot reads and Kubernetes does not have.

A cluster that runs one of the designs has these already, from there; ours keep every field that
theirs know, so that either serves.
"""

from aliquot.dialects import gpu_crds, quota_crds, volcano_crds
from aliquot.dialects.definition import Definition
from aliquot.dialects.documents import Body

DEFINITIONS: tuple[Definition, ...] = (
    *quota_crds.DEFINITIONS,
    *gpu_crds.DEFINITIONS,
    *volcano_crds.DEFINITIONS,
)


def definitions() -> list[Body]:
    """All of them, as objects to apply; every call gives fresh ones."""
    return [each.body() for each in DEFINITIONS]
