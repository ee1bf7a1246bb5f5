"""Reviews: who a client is, and what it may do.

The one who holds the token may do everything, and is told that roles are stored, not enforced. For
any other user, named in the review or impersonated, the stored roles answer, as on a cluster.
"""

from collections.abc import Mapping
from typing import Any

from aliquot.json import Body
from aliquot.server.answers.roles import MASTERS, Access, User, allowed_by, rules_of
from aliquot.server.http.refusals import bad_request
from aliquot.server.http.warnings import warn
from aliquot.server.rules.metadata import timestamp
from aliquot.server.storage.store import Store

HOLDER = User("kubernetes-admin", (MASTERS, "system:authenticated"))
"""Who holds the token of the kubeconfig."""
NOT_ENFORCED = "RBAC is stored, not enforced: the token of the kubeconfig may do everything"


def client(headers: Mapping[str, str], groups: list[str]) -> User:
    """Who sends a request: the holder of the token, or whom they impersonate."""
    name = headers.get("Impersonate-User")
    if not name:
        return HOLDER
    found = [*groups]
    if name.startswith("system:serviceaccount:"):
        namespace = name.split(":")[2]
        found += ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    return User(name, (*dict.fromkeys([*found, "system:authenticated"]),))


def answer(store: Store, kind: str, body: Any, who: User, namespace: str | None) -> Body:
    """The review, answered."""
    if not isinstance(body, dict):
        raise bad_request(f"a {kind} is expected")
    spec = _section(body, "spec") or {}
    _section(body, "metadata")
    if kind == "SelfSubjectReview":
        return _whoami(body, who)
    if kind == "SelfSubjectRulesReview":
        return _rules(store, body, who, str(spec.get("namespace") or ""))
    if kind != "SelfSubjectAccessReview":
        if not spec.get("user") and not spec.get("groups"):
            raise bad_request("spec.user: at least one of user or group must be specified")
        groups = spec.get("groups") or []
        if not isinstance(groups, list):
            raise bad_request("spec.groups: expected a list")
        who = User(str(spec.get("user") or ""), tuple(map(str, groups)))
    access = _access(spec)
    if namespace is not None and access.namespace not in ("", namespace):
        raise bad_request("spec.resourceAttributes.namespace must match metadata.namespace")
    return {**body, "metadata": _metadata(body), "status": _verdict(store, who, access)}


def _verdict(store: Store, who: User, access: Access) -> Body:
    if who == HOLDER:
        return {"allowed": True, "reason": NOT_ENFORCED}
    warn("RBAC is stored, not enforced: this is what the stored roles allow on a cluster")
    why = allowed_by(store, who, access)
    return {"allowed": bool(why), **({"reason": why} if why else {})}


def _access(spec: Body) -> Access:
    resource, path = (
        _section(spec, each) for each in ("resourceAttributes", "nonResourceAttributes")
    )
    if (resource is None) == (path is None):
        problem = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise bad_request(f"spec.resourceAttributes: {problem}")
    if path is not None:
        return Access(str(path.get("verb") or ""), path=str(path.get("path") or "/"))
    asked = {word: str(value or "") for word, value in (resource or {}).items()}
    name = asked.get("resource", "")
    if asked.get("subresource"):
        name = f"{name}/{asked['subresource']}"
    return Access(
        asked.get("verb", ""),
        asked.get("group", ""),
        name,
        asked.get("namespace", ""),
        asked.get("name", ""),
    )


def _section(body: Body, key: str) -> Body | None:
    """An object in a review, if it is there."""
    found: Any = body.get(key)
    if found is not None and not isinstance(found, dict):
        raise bad_request(f"{key}: expected an object")
    return found


def _whoami(body: Body, who: User) -> Body:
    user = {"username": who.name, "groups": list(who.groups)}
    return {**body, "metadata": _metadata(body), "status": {"userInfo": user}}


def _rules(store: Store, body: Body, who: User, namespace: str) -> Body:
    found = rules_of(store, who, namespace)
    status: Body = {
        "resourceRules": [each for each in found if not each.get("nonResourceURLs")],
        "nonResourceRules": [each for each in found if each.get("nonResourceURLs")],
        "incomplete": False,
    }
    return {**body, "metadata": _metadata(body), "status": status}


def _metadata(body: Body) -> Body:
    return {**(body.get("metadata") or {}), "creationTimestamp": timestamp()}
