"""What stored roles allow a user, as the RBAC authorizer of kube-apiserver reads them.

Nothing here is enforced: only reviews ask, so that roles can be tried before they are applied to a
cluster that enforces them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from aliquot.json import Body
from aliquot.server.selectors.selectors import Labels
from aliquot.server.storage.store import Store

_GROUP = "rbac.authorization.k8s.io"
_ACCOUNT = "system:serviceaccount:"
MASTERS = "system:masters"
"""The group whose members may do everything."""


@dataclass(frozen=True, slots=True)
class User:
    """Who asks."""

    name: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Access:
    """What is asked for: a verb on a resource, or on a path."""

    verb: str
    group: str = ""
    resource: str = ""
    """With its subresource, such as `pods/log`."""
    namespace: str = ""
    name: str = ""
    path: str = ""
    """A path such as `/healthz`, in place of a resource."""


def allowed_by(store: Store, user: User, access: Access) -> str:
    """The binding that allows it, in the words of kube-apiserver; empty if none does."""
    if MASTERS in user.groups:
        return f'allowed by the group "{MASTERS}"'
    for binding, role, rules in _bound(store, user, access.namespace):
        if any(_allows(rule, access) for rule in rules):
            what, name = binding["kind"], binding["metadata"]["name"]
            namespace = binding["metadata"].get("namespace")
            title = f'"{name}/{namespace}"' if namespace else f'"{name}"'
            return f'RBAC: allowed by {what} {title} of {role["kind"]} "{role["name"]}"'
    return ""


def rules_of(store: Store, user: User, namespace: str) -> list[Body]:
    """All rules that hold for a user in a namespace."""
    if MASTERS in user.groups:
        return [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
            {"verbs": ["*"], "nonResourceURLs": ["*"]},
        ]
    return [rule for _, _, rules in _bound(store, user, namespace) for rule in rules]


def _bound(store: Store, user: User, namespace: str) -> Iterator[tuple[Body, Body, list[Body]]]:
    """The bindings that name the user, each with its role and the rules of that role."""
    places = [f"clusterrolebindings.{_GROUP}"] + ([f"rolebindings.{_GROUP}"] if namespace else [])
    for place in places:
        for entry in store.all(place, namespace if place.startswith("role") else None):
            binding = entry.read()
            role = binding.get("roleRef") or {}
            inside = binding["metadata"].get("namespace", "")
            if any(_names(each, user, inside) for each in binding.get("subjects") or ()):
                yield binding, role, _rules(store, role, inside)


def _names(subject: Body, user: User, namespace: str) -> bool:
    kind, name = subject.get("kind"), subject.get("name", "")
    if kind == "ServiceAccount":
        return user.name == f"{_ACCOUNT}{subject.get('namespace') or namespace}:{name}"
    return name in user.groups if kind == "Group" else name == user.name


def _rules(store: Store, role: Body, namespace: str) -> list[Body]:
    everywhere = role.get("kind") == "ClusterRole"
    place = f"clusterroles.{_GROUP}" if everywhere else f"roles.{_GROUP}"
    found = store.get(place, "" if everywhere else namespace, role.get("name", ""))
    if found is None:
        return []
    body = found.read()
    rules = list(body.get("rules") or ())
    for each in (body.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
        selector = Labels.of(each)
        for entry in store.all(place) if selector is not None else ():
            if selector is not None and selector.match(entry.labels):
                rules += entry.read().get("rules") or ()
    return rules


def _allows(rule: Body, access: Access) -> bool:
    if not _among(access.verb, rule.get("verbs")):
        return False
    if access.path:
        return any(_path_matches(each, access.path) for each in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames") or ()
    return (
        _among(access.group, rule.get("apiGroups"))
        and _resource_matches(access.resource, rule.get("resources") or [])
        and (not names or access.name in names)
    )


def _resource_matches(resource: str, written: list[str]) -> bool:
    _, slash, subresource = resource.partition("/")
    return _among(resource, written) or bool(slash and f"*/{subresource}" in written)


def _path_matches(written: str, path: str) -> bool:
    if written.endswith("*"):
        return path.startswith(written[:-1])
    return written == path


def _among(word: str, written: list[str] | None) -> bool:
    return "*" in (written or ()) or word in (written or ())
