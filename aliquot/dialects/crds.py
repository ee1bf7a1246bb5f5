"""CustomResourceDefinitions for every object that Aliquot reads and Kubernetes does not have.

A cluster that runs one of the designs has these already, from there; ours keep every field that
theirs know, so that either serves.
"""

from aliquot.dialects.core.definition import Definition
from aliquot.dialects.kep9 import crds as quota_crds
from aliquot.dialects.tensor_fusion import crds as gpu_crds
from aliquot.dialects.volcano import crds as volcano_crds
from aliquot.json import Body

DEFINITIONS: tuple[Definition, ...] = (
    *quota_crds.DEFINITIONS,
    *gpu_crds.DEFINITIONS,
    *volcano_crds.DEFINITIONS,
)


def definitions() -> list[Body]:
    """All of them, as objects to apply; every call gives fresh ones."""
    return [each.body() for each in DEFINITIONS]
