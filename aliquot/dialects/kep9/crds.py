"""The custom kinds of KEP-9 and Koordinator, ElasticQuota and PodGroup.

The ElasticQuota of nos is built from the same parts, in `nos.crds`.
"""

from aliquot.dialects.core.definition import Column, Definition
from aliquot.dialects.core.manifest import KEP9_GROUPS, KOORDINATOR_PREFIX
from aliquot.dialects.core.schema import (
    Schema,
    conditions,
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

MIN = quantities("What the quota is sure of. A resource that is not named here is 0.")
MAX = quantities("What the quota may use at most. A resource that is not named is unlimited.")
_SPEC = record({"min": MIN, "max": MAX}, description="What the quota is.")
STATUS = open_ended(
    record(
        {
            "used": quantities("What its pods hold that are bound and have not ended."),
            "conditions": conditions(),
        },
        description="How the quota stands.",
    )
)
_WORDS = (("Used", ".status.used"), ("Min", ".spec.min"), ("Max", ".spec.max"))


def _amount_columns(title: str, resource: str) -> tuple[Column, ...]:
    """What is used, min and max of a resource, a column each: a column shows one value readably."""
    return tuple((f"{title} {word}", "string", f"{path}.{resource}") for word, path in _WORDS)


COLUMNS: tuple[Column, ...] = (
    *_amount_columns("GPU", r"nvidia\.com/gpu"),
    *_amount_columns("CPU", "cpu"),
)
"""The resources that most quotas name; all that a quota names is in the wide columns."""
WIDE: tuple[Column, ...] = (
    *_amount_columns("Memory", "memory"),
    *((word, "string", path) for word, path in _WORDS),
)
_SHORT_NAMES: dict[str, tuple[str, ...]] = {
    "scheduling.x-k8s.io": ("eq", "eqs"),
    "scheduling.sigs.k8s.io": ("keq",),
}
_GROUP_SHORT_NAMES: dict[str, tuple[str, ...]] = {
    "scheduling.x-k8s.io": ("pg", "pgs"),
    "scheduling.sigs.k8s.io": ("kpg",),
}
"""Each group has its own: kubectl takes the first group that knows a word, rarely the one meant."""

_KOORDINATOR = KOORDINATOR_PREFIX.replace(".", r"\.")
_TREE: tuple[Column, ...] = (
    ("Parent", "string", rf".metadata.labels.{_KOORDINATOR}parent"),
    ("Runtime", "string", rf".metadata.annotations.{_KOORDINATOR}runtime"),
)


def elastic_quota(
    group: str,
    short_names: tuple[str, ...],
    wide: tuple[Column, ...] = (),
    annotations: dict[str, str] | None = None,
) -> Definition:
    """The definition of the ElasticQuota of a group."""
    return Definition(
        group=group,
        version="v1alpha1",
        kind="ElasticQuota",
        plural="elasticquotas",
        about="What a team is sure of, and how much more it may borrow while others leave it idle.",
        spec=_SPEC,
        status=STATUS,
        columns=COLUMNS,
        wide=(*WIDE, *wide),
        short_names=short_names,
        annotations=annotations or {},
    )


_GANG: Schema = record(
    {
        "minMember": whole("How many pods must start together.", minimum=1),
        "minResources": quantities("What they need together, at least."),
        "scheduleTimeoutSeconds": whole("How long they wait for each other."),
    },
    description="What the group is.",
)


def _pod_group(group: str) -> Definition:
    return Definition(
        group=group,
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
        short_names=_GROUP_SHORT_NAMES[group],
        annotations=_APPROVED,
    )


ELASTIC_QUOTAS: tuple[Definition, ...] = tuple(
    elastic_quota(group, _SHORT_NAMES[group], _TREE, _APPROVED) for group in KEP9_GROUPS
)

POD_GROUPS: tuple[Definition, ...] = tuple(map(_pod_group, KEP9_GROUPS))
