"""The custom kinds of KEP-9, Koordinator and nos: ElasticQuota, CompositeElasticQuota, PodGroup."""

from aliquot.dialects.core.definition import Column, Definition
from aliquot.dialects.core.manifest import KEP9_GROUPS, KOORDINATOR_PREFIX, NOS_GROUPS
from aliquot.dialects.core.schema import (
    Schema,
    conditions,
    listed,
    moment,
    open_ended,
    quantities,
    record,
    text,
    whole,
)

_APPROVED = {
    "api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/52"
}
"""Without it an API server refuses groups under k8s.io."""

_MIN = quantities("What the quota is sure of. A resource that is not named here is 0.")
_MAX = quantities("What the quota may use at most. A resource that is not named is unlimited.")
_SPEC = record({"min": _MIN, "max": _MAX}, description="What the quota is.")
_NAMESPACES = listed(
    text(), "The namespaces that share the quota.", minItems=1, **{"x-kubernetes-list-type": "set"}
)
_STATUS = open_ended(
    record(
        {
            "used": quantities("What its pods hold that are bound and have not ended."),
            "conditions": conditions(),
        },
        description="How the quota stands.",
    )
)
_COLUMNS: tuple[Column, ...] = (
    ("Min", "string", ".spec.min"),
    ("Max", "string", ".spec.max"),
    ("Used", "string", ".status.used"),
)
_SHORT_NAMES: dict[str, tuple[str, ...]] = {
    "scheduling.x-k8s.io": ("eq", "eqs"),
    "scheduling.sigs.k8s.io": ("keq",),
    "nos.nebuly.com": ("neq",),
    "nos.nebuly.ai": ("neqai",),
}
_SHORT_NAMES_OF_COMPOSITES: dict[str, tuple[str, ...]] = {
    "nos.nebuly.com": ("ceq", "ceqs"),
    "nos.nebuly.ai": ("ceqai",),
}
"""Each group has its own: kubectl takes the first group that knows a word, rarely the one meant."""

_KOORDINATOR = KOORDINATOR_PREFIX.replace(".", r"\.")
_TREE: tuple[Column, ...] = (
    ("Parent", "string", rf".metadata.labels.{_KOORDINATOR}parent"),
    ("Runtime", "string", rf".metadata.annotations.{_KOORDINATOR}runtime"),
)


def _elastic_quota(group: str, wide: tuple[Column, ...] = ()) -> Definition:
    return Definition(
        group=group,
        version="v1alpha1",
        kind="ElasticQuota",
        plural="elasticquotas",
        about="What a team is sure of, and how much more it may borrow while others leave it idle.",
        spec=_SPEC,
        status=_STATUS,
        columns=_COLUMNS,
        wide=wide,
        short_names=_SHORT_NAMES[group],
        annotations=_APPROVED if group in KEP9_GROUPS else {},
    )


def _composite(group: str) -> Definition:
    return Definition(
        group=group,
        version="v1alpha1",
        kind="CompositeElasticQuota",
        plural="compositeelasticquotas",
        about="An elastic quota that several namespaces share.",
        spec=record(
            {"namespaces": _NAMESPACES, "min": _MIN, "max": _MAX},
            "namespaces",
            description="What the quota is.",
        ),
        status=_STATUS,
        columns=_COLUMNS,
        wide=(("Namespaces", "string", ".spec.namespaces"),),
        short_names=_SHORT_NAMES_OF_COMPOSITES[group],
    )


_GANG: Schema = record(
    {
        "minMember": whole("How many pods must start together.", minimum=1),
        "minResources": quantities("What they need together, at least."),
        "scheduleTimeoutSeconds": whole("How long they wait for each other."),
    },
    description="What the group is.",
)

_POD_GROUP = Definition(
    group="scheduling.x-k8s.io",
    version="v1alpha1",
    kind="PodGroup",
    plural="podgroups",
    about="Pods that start together, or not at all.",
    spec=_GANG,
    status=open_ended(
        record(
            {
                "phase": text("How far the group is."),
                "occupiedBy": text("Who its pods belong to."),
                "scheduled": whole("How many pods have a node."),
                "running": whole("How many pods run."),
                "succeeded": whole("How many pods have succeeded."),
                "failed": whole("How many pods have failed."),
                "scheduleStartTime": moment("Since when it tries to start."),
            },
            description="How the group stands.",
        )
    ),
    columns=(
        ("Phase", "string", ".status.phase"),
        ("MinMember", "integer", ".spec.minMember"),
        ("Running", "integer", ".status.running"),
        ("Succeeded", "integer", ".status.succeeded"),
        ("Failed", "integer", ".status.failed"),
    ),
    short_names=("pg", "pgs"),
    annotations=_APPROVED,
)

DEFINITIONS: tuple[Definition, ...] = (
    *(_elastic_quota(group, _TREE) for group in KEP9_GROUPS),
    *(_elastic_quota(group) for group in NOS_GROUPS),
    *(_composite(group) for group in NOS_GROUPS),
    _POD_GROUP,
)
