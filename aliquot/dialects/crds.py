"""CustomResourceDefinitions for every kind that Aliquot reads and Kubernetes does not have.

A cluster that runs one of the designs has its definitions installed already. Ours keep every field
that those know, so that either set serves Aliquot.
"""

from aliquot.dialects.core.definition import Definition
from aliquot.dialects.kep9 import crds as quota_crds
from aliquot.dialects.koordinator import crds as koordinator_crds
from aliquot.dialects.nos import crds as nos_crds
from aliquot.dialects.tensor_fusion import crds as gpu_crds
from aliquot.dialects.volcano import crds as volcano_crds
from aliquot.json import Body

DEFINITIONS: tuple[Definition, ...] = (
    *quota_crds.ELASTIC_QUOTAS,
    *nos_crds.DEFINITIONS,
    *koordinator_crds.DEFINITIONS,
    *quota_crds.POD_GROUPS,
    *gpu_crds.DEFINITIONS,
    *volcano_crds.DEFINITIONS,
)


def definitions() -> list[Body]:
    """All definitions as objects to apply, built anew at every call."""
    return [each.body() for each in DEFINITIONS]
