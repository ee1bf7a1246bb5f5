"""Koordinator's own custom kind, ElasticQuotaProfile. Its ElasticQuota is in `kep9.crds`."""

from aliquot.dialects.core.definition import Column, Definition
from aliquot.dialects.core.manifest import KOORDINATOR_PREFIX, KOORDINATOR_QUOTAS
from aliquot.dialects.core.schema import listed, mapped, open_ended, record, text

_EXPRESSION = record(
    {
        "key": text("The label."),
        "operator": text("In, NotIn, Exists or DoesNotExist."),
        "values": listed(text(), "What the label must be, or must not be."),
    },
    "key",
    "operator",
)
_SELECTOR = record(
    {
        "matchLabels": mapped(text(), "Labels that a node must have, with these values."),
        "matchExpressions": listed(_EXPRESSION, "What else must hold for its labels."),
    },
    description="The nodes of the tree.",
)
_TREE = KOORDINATOR_PREFIX.replace(".", r"\.") + "tree-id"
_COLUMNS: tuple[Column, ...] = (
    ("Quota", "string", ".spec.quotaName"),
    ("Tree", "string", rf".metadata.labels.{_TREE}"),
    ("Ratio", "string", ".spec.resourceRatio"),
)

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        group=KOORDINATOR_QUOTAS,
        version="v1alpha1",
        kind="ElasticQuotaProfile",
        plural="elasticquotaprofiles",
        about="A tree of quotas over some of the nodes, and the root quota that is kept for it.",
        spec=record(
            {
                "quotaName": text("The name of the root quota, in the profile's namespace."),
                "quotaLabels": mapped(text(), "Further labels of the root quota."),
                "resourceRatio": text(
                    "How much of what the nodes have is shared, above 0 and at most 1; else all."
                ),
                "nodeSelector": _SELECTOR,
            },
            "quotaName",
            "nodeSelector",
            description="Which nodes, and which quota.",
        ),
        status=open_ended(record({}, description="Nothing is written here.")),
        columns=_COLUMNS,
        short_names=("eqp",),
    ),
)
