"""RBAC: the two service accounts with their roles, and roles for users of our kinds.

A component may do what it needs in normal operation, and nothing else: it reads no Secret but its
own, creates no pods and no namespaces, and does not change the specs that administrators write. A
right that only some configurations use has a role of its own, which the others do not have. A new
permission is added here, and to the table in `tests/cluster/install`.

Teams read quotas and queues, and write PodGroups and Jobs. Quotas are written by the platform's
administrators, as ResourceQuotas are: the role for that must be bound explicitly.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

from aliquot.dialects.core.manifest import (
    KEP9_GROUPS,
    KOORDINATOR_QUOTAS,
    STORAGE_GROUP,
    VOLCANO_GROUP,
)
from aliquot.dialects.crds import DEFINITIONS
from aliquot.json import Body
from aliquot.kube.api.resource import (
    BUDGETS,
    CLAIMS,
    EVENTS,
    JOBS,
    NAMESPACES,
    NODES,
    OWNERS,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
    SERVICES,
    STORAGE,
    VOLUMES,
    WORKLOADS,
)
from aliquot.kube.install.installation import (
    CERTIFICATE,
    CONFIGURATION,
    DELETION,
    KOORDINATOR,
    METRICS_READER,
    QUEUES,
    READER,
    SCHEDULER,
    SPREAD,
    WEBHOOK,
    Installation,
    metadata,
)

_GROUP = "rbac.authorization.k8s.io"
_READ = ("list", "watch")
_LIST = ("get", *_READ)
_EVERYTHING = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_PROTECTED = ("/metrics", "/debug/invariants", "/debug/decisions")
"""What of the probes' port is no probe."""
_TEAM_KINDS = ("PodGroup", "Job")
"""The kinds that describe work, not guarantees."""
_WITH_STATUS = {each.kind for each in DEFINITIONS} - {"HyperNode", "ElasticQuotaProfile"}
"""The kinds whose status Aliquot writes."""


def accounts(installation: Installation) -> list[Body]:
    """The service accounts; a token is mounted only where a pod asks for it."""
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": metadata(name, component, installation.namespace),
            "automountServiceAccountToken": False,
        }
        for name, component in ((SCHEDULER, "scheduler"), (WEBHOOK, "webhook"))
    ]


def roles(installation: Installation) -> list[Body]:
    """All roles and role bindings."""
    namespace = installation.namespace
    return [
        *_granted(SCHEDULER, "scheduler", namespace, _scheduler(), _lease()),
        *_granted(WEBHOOK, "webhook", namespace, _webhook(), _certificate()),
        *_optional(installation),
        *_for_people(namespace),
    ]


def _optional(installation: Installation) -> Iterator[Body]:
    """The roles that not every installation needs, each with its binding."""
    namespace = installation.namespace
    if installation.deletes_pods:
        pods = [_rule("", ("pods",), ("delete",))]
        yield from _bound(DELETION, SCHEDULER, "scheduler", namespace, pods)
    if installation.may_have_policy("hierarchy"):
        quotas = [_rule(group, ("elasticquotas",), ("create", "patch")) for group in KEP9_GROUPS]
        profiles = _rule(KOORDINATOR_QUOTAS, ("elasticquotaprofiles",), ("patch",))
        yield from _bound(KOORDINATOR, SCHEDULER, "scheduler", namespace, [*quotas, profiles])
    if installation.may_have_policy("queues"):
        queues = [_rule(VOLCANO_GROUP, ("queues",), ("create",))]
        yield from _bound(QUEUES, SCHEDULER, "scheduler", namespace, queues)
    if installation.spreads_by_default:
        yield from _bound(SPREAD, SCHEDULER, "scheduler", namespace, _selectors())
    if installation.metrics_auth:
        for account, component in ((SCHEDULER, "scheduler"), (WEBHOOK, "webhook")):
            name = f"{account}-metrics-auth"
            yield from _bound(name, account, component, namespace, _reviews())
        reader = [
            {
                "nonResourceURLs": ["/metrics", "/debug/invariants", "/debug/decisions"],
                "verbs": ["get"],
            }
        ]
        yield _role("ClusterRole", METRICS_READER, "", reader)


def _selectors() -> list[Body]:
    """The rights to read what selects pods."""
    resources = (SERVICES, *OWNERS)
    groups = dict.fromkeys(each.group for each in resources)
    return [
        _rule(group, [each.plural for each in resources if each.group == group], _READ)
        for group in groups
    ]


def _reviews() -> list[Body]:
    """The rights to ask the API server who has a token, and what that user may do."""
    return [
        _rule("authentication.k8s.io", ("tokenreviews",), ("create",)),
        _rule("authorization.k8s.io", ("subjectaccessreviews",), ("create",)),
    ]


def _scheduler() -> list[Body]:
    """The scheduler reads what it decides by, binds, evicts, and writes statuses."""
    return [
        _rule("", ("pods",), ("get", *_READ, "patch")),
        _rule("", ("pods/binding", "pods/eviction"), ("create",)),
        _rule("", ("pods/status",), ("patch",)),
        _rule("", ("nodes", "namespaces", "resourcequotas"), _READ),
        _rule("", ("persistentvolumes", "persistentvolumeclaims"), ("get", *_READ, "patch")),
        _rule("", ("events",), ("create", "patch")),
        _rule("policy", ("poddisruptionbudgets",), _READ),
        _rule("scheduling.k8s.io", ("priorityclasses",), _READ),
        _rule(STORAGE_GROUP, [each.plural for each in STORAGE], _READ),
        *_ours(_READ),
        *_ours(("patch",), part="/status", kinds=_WITH_STATUS),
        *_jobs(_READ),
        _rule(VOLCANO_GROUP, ("podgroups",), ("create", "patch")),
    ]


def _jobs(verbs: Sequence[str]) -> list[Body]:
    """The rights to read the jobs of which gangs are derived."""
    groups: dict[str, dict[str, None]] = {}
    for each in JOBS:
        groups.setdefault(each.group, {})[each.plural] = None
    return [_rule(group, plurals, verbs) for group, plurals in groups.items()]


def _webhook() -> list[Body]:
    """The webhook reads what it validates against, and writes its `caBundle`."""
    configurations = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    return [
        _rule("", ("pods", "nodes", "namespaces", "resourcequotas"), _READ),
        _rule("scheduling.k8s.io", ("priorityclasses",), _READ),
        *_ours(_READ),
        _rule("admissionregistration.k8s.io", configurations, ("get", "patch"), name=CONFIGURATION),
    ]


def _lease() -> list[Body]:
    """The Lease for leader election; RBAC cannot restrict `create` to a name."""
    return [
        _rule("coordination.k8s.io", ("leases",), ("create",)),
        _rule("coordination.k8s.io", ("leases",), ("get", "update"), name=SCHEDULER),
    ]


def _certificate() -> list[Body]:
    return [
        _rule("", ("secrets",), ("create",)),
        _rule("", ("secrets",), ("get", "update"), name=CERTIFICATE),
    ]


def _for_people(namespace: str) -> list[Body]:
    """Roles aggregated to Kubernetes' `view`, `edit` and `admin`, and two for the platform.

    The administrator's may also pause evictions, by an annotation of Aliquot's own namespace. The
    reader's allows questions to the cluster: to list and watch what decides, and, in Aliquot's own
    namespace, to read its Configuration and its decision log.
    """
    pause = _rule("", ("namespaces",), ("get", "patch"), name=namespace)
    teams = [*_ours(_EVERYTHING, kinds=_TEAM_KINDS)]
    return [
        _role("ClusterRole", "aliquot-viewer", "", _ours(("get", *_READ)), aggregate_to=("view",)),
        _role("ClusterRole", "aliquot-editor", "", teams, aggregate_to=("edit", "admin")),
        _role("ClusterRole", "aliquot-admin", "", [*_ours(_EVERYTHING), pause]),
        _role("ClusterRole", READER, "", [*_lists(), *_ours(_LIST), *_jobs(_LIST)]),
        _role("Role", READER, "", _own_log(), namespace),
    ]


def _lists() -> list[Body]:
    """The rights to list the kinds of others that decide, and what makes pods anew."""
    plain = (PODS, NODES, NAMESPACES, RESOURCE_QUOTAS, CLAIMS, VOLUMES, SERVICES, EVENTS)
    all_kinds = (*plain, BUDGETS, PRIORITY_CLASSES, *STORAGE, *WORKLOADS, *JOBS)
    resources = list(dict.fromkeys(all_kinds))
    groups = dict.fromkeys(each.group for each in resources)
    return [
        _rule(group, [each.plural for each in resources if each.group == group], _LIST)
        for group in groups
    ]


def _own_log() -> list[Body]:
    """RBAC names a Service and its port together, with a scheme where it is https."""
    names = [f"{SCHEDULER}:metrics", f"https:{SCHEDULER}:metrics"]
    proxy: Body = {"apiGroups": [""], "resources": ["services/proxy"], "verbs": ["get"]}
    return [
        _rule("", ("configmaps",), ("get",), name=CONFIGURATION),
        {**proxy, "resourceNames": names},
    ]


def _ours(verbs: Sequence[str], part: str = "", kinds: Collection[str] = ()) -> list[Body]:
    """A rule for each API group of our kinds: all kinds, or only the named ones."""
    found: dict[str, list[str]] = {}
    for each in DEFINITIONS:
        if not kinds or each.kind in kinds:
            found.setdefault(each.group, []).append(each.plural + part)
    return [_rule(group, plurals, verbs) for group, plurals in found.items()]


def _rule(group: str, resources: Iterable[str], verbs: Sequence[str], name: str = "") -> Body:
    rule: Body = {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
    return {**rule, "resourceNames": [name]} if name else rule


def _granted(
    name: str, component: str, namespace: str, cluster_rules: list[Body], own_rules: list[Body]
) -> list[Body]:
    """Roles and bindings of a component: in the whole cluster, and in its own namespace."""
    return [
        _role("ClusterRole", name, component, cluster_rules),
        _binding("ClusterRole", name, component, namespace),
        _role("Role", name, component, own_rules, namespace),
        _binding("Role", name, component, namespace),
    ]


def _bound(
    name: str, account: str, component: str, namespace: str, rules: list[Body]
) -> Iterator[Body]:
    """A role in the whole cluster, and its binding to a component's account."""
    yield _role("ClusterRole", name, component, rules)
    yield _binding("ClusterRole", name, component, namespace, account)


def _role(
    kind: str,
    name: str,
    component: str,
    rules: list[Body],
    namespace: str = "",
    aggregate_to: Sequence[str] = (),
) -> Body:
    meta = metadata(name, component, namespace)
    meta["labels"] |= {f"{_GROUP}/aggregate-to-{each}": "true" for each in aggregate_to}
    return {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": meta, "rules": rules}


def _binding(kind: str, name: str, component: str, namespace: str, account: str = "") -> Body:
    where = namespace if kind == "Role" else ""
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata(name, component, where),
        "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account or name, "namespace": namespace}],
    }
