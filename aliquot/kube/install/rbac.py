"""Who may do what: the two service accounts, and roles for the people who use our kinds.

A component may do what it does on every ordinary day, and nothing else: no reading of Secrets
but the one it owns, no creating of pods, no editing of what administrators write. Whoever gives a
component something new to do adds it here, and to the table in `tests/cluster/install`.

Teams see quotas and queues, and write groups and jobs; guarantees are the platform's to give, as
ResourceQuotas are. So the role that may write them is bound by hand.
"""

from collections.abc import Iterable, Sequence

from aliquot.dialects.core.manifest import KEP9_GROUPS, VOLCANO_GROUP
from aliquot.dialects.crds import DEFINITIONS
from aliquot.json import Body
from aliquot.kube.install.installation import (
    CERTIFICATE,
    CONFIGURATION,
    SCHEDULER,
    WEBHOOK,
    Installation,
    metadata,
)

_GROUP = "rbac.authorization.k8s.io"
_READ = ("list", "watch")
_EVERYTHING = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_OF_TEAMS = ("PodGroup", "Job")
"""The kinds that describe work, not what anybody is entitled to."""


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
    """All roles, and to whom they are given."""
    space = installation.namespace
    return [
        *_granted(SCHEDULER, "scheduler", space, _scheduler(), _lease()),
        *_granted(WEBHOOK, "webhook", space, _webhook(), _certificate()),
        *_for_people(),
    ]


def _scheduler() -> list[Body]:
    """It reads what it decides by, binds, evicts, and writes statuses."""
    return [
        _rule("", ("pods",), ("get", *_READ, "patch", "delete")),
        _rule("", ("pods/binding", "pods/eviction"), ("create",)),
        _rule("", ("pods/status",), ("patch",)),
        _rule("", ("nodes", "resourcequotas"), _READ),
        _rule("", ("namespaces",), (*_READ, "create")),
        _rule("", ("events",), ("create", "patch")),
        _rule("policy", ("poddisruptionbudgets",), _READ),
        _rule("scheduling.k8s.io", ("priorityclasses",), _READ),
        *_ours(_READ),
        *_ours(("patch",), part="/status"),
        *(_rule(group, ("elasticquotas",), ("create", "patch")) for group in KEP9_GROUPS),
        _rule(VOLCANO_GROUP, ("queues",), ("create",)),
    ]


def _webhook() -> list[Body]:
    """It reads what it judges by, and writes its certificate where API servers look for it."""
    configurations = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    return [
        _rule("", ("pods", "nodes", "namespaces", "resourcequotas"), _READ),
        _rule("scheduling.k8s.io", ("priorityclasses",), _READ),
        *_ours(_READ),
        _rule("admissionregistration.k8s.io", configurations, ("get", "patch"), name=CONFIGURATION),
    ]


def _lease() -> list[Body]:
    """The Lease that says which replica decides; what is created has no name to go by yet."""
    return [
        _rule("coordination.k8s.io", ("leases",), ("create",)),
        _rule("coordination.k8s.io", ("leases",), ("get", "update"), name=SCHEDULER),
    ]


def _certificate() -> list[Body]:
    return [
        _rule("", ("secrets",), ("create",)),
        _rule("", ("secrets",), ("get", "update"), name=CERTIFICATE),
    ]


def _for_people() -> list[Body]:
    """Roles that Kubernetes' own `view`, `edit` and `admin` take in, and one for the platform."""
    teams = [*_ours(_EVERYTHING, kinds=_OF_TEAMS)]
    return [
        _role("ClusterRole", "aliquot-viewer", "", _ours(("get", *_READ)), grows=("view",)),
        _role("ClusterRole", "aliquot-editor", "", teams, grows=("edit", "admin")),
        _role("ClusterRole", "aliquot-admin", "", _ours(_EVERYTHING)),
    ]


def _ours(verbs: Sequence[str], part: str = "", kinds: Sequence[str] = ()) -> list[Body]:
    """A rule for each group of our kinds: all of them, or those that are named."""
    found: dict[str, list[str]] = {}
    for each in DEFINITIONS:
        if not kinds or each.kind in kinds:
            found.setdefault(each.group, []).append(each.plural + part)
    return [_rule(group, plurals, verbs) for group, plurals in found.items()]


def _rule(group: str, resources: Iterable[str], verbs: Sequence[str], name: str = "") -> Body:
    said: Body = {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
    return {**said, "resourceNames": [name]} if name else said


def _granted(
    name: str, component: str, space: str, everywhere: list[Body], at_home: list[Body]
) -> list[Body]:
    """What a component may do in the whole cluster, and in its own namespace only."""
    return [
        _role("ClusterRole", name, component, everywhere),
        _binding("ClusterRole", name, component, space),
        _role("Role", name, component, at_home, space),
        _binding("Role", name, component, space),
    ]


def _role(
    kind: str,
    name: str,
    component: str,
    rules: list[Body],
    space: str = "",
    grows: Sequence[str] = (),
) -> Body:
    about = metadata(name, component, space)
    about["labels"] |= {f"{_GROUP}/aggregate-to-{each}": "true" for each in grows}
    return {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": about, "rules": rules}


def _binding(kind: str, name: str, component: str, space: str) -> Body:
    where = space if kind == "Role" else ""
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata(name, component, where),
        "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": space}],
    }
