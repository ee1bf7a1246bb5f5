"""The custom kinds of nos: ElasticQuota and CompositeElasticQuota.

Both are built from the parts of KEP-9's ElasticQuota, so that a quota has the same min, max, status
and columns in every group.
"""

from aliquot.dialects.core.definition import Definition
from aliquot.dialects.core.manifest import NOS_GROUPS
from aliquot.dialects.core.schema import listed, record, text
from aliquot.dialects.kep9.crds import COLUMNS, MAX, MIN, STATUS, WIDE, elastic_quota

_NAMESPACES = listed(
    text(), "The namespaces that share the quota.", minItems=1, **{"x-kubernetes-list-type": "set"}
)
_SHORT_NAMES: dict[str, tuple[str, ...]] = {
    "nos.nebuly.com": ("neq",),
    "nos.nebuly.ai": ("neqai",),
}
_SHORT_NAMES_OF_COMPOSITES: dict[str, tuple[str, ...]] = {
    "nos.nebuly.com": ("ceq", "ceqs"),
    "nos.nebuly.ai": ("ceqai",),
}
"""Each group has its own: kubectl takes the first group that knows a word, rarely the one meant."""


def _composite(group: str) -> Definition:
    return Definition(
        group=group,
        version="v1alpha1",
        kind="CompositeElasticQuota",
        plural="compositeelasticquotas",
        about="An elastic quota that several namespaces share.",
        spec=record(
            {"namespaces": _NAMESPACES, "min": MIN, "max": MAX},
            "namespaces",
            description="What the quota is.",
        ),
        status=STATUS,
        columns=COLUMNS,
        wide=(*WIDE, ("Namespaces", "string", ".spec.namespaces")),
        short_names=_SHORT_NAMES_OF_COMPOSITES[group],
    )


DEFINITIONS: tuple[Definition, ...] = (
    *(elastic_quota(group, _SHORT_NAMES[group]) for group in NOS_GROUPS),
    *(_composite(group) for group in NOS_GROUPS),
)
