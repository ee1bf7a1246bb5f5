"""Discovery: the groups, versions and kinds that are served, one by one or aggregated."""

from typing import Any

from aliquot.json import Body
from aliquot.server.http.refusals import no_such_path
from aliquot.server.kinds.kind import Kind
from aliquot.server.kinds.registry import Registry

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_STATUS_VERBS = ["get", "patch", "update"]
_SUBRESOURCES: dict[str, tuple[str, str, str, list[str]]] = {
    "attach": ("", "v1", "PodAttachOptions", ["create", "get"]),
    "binding": ("", "v1", "Binding", ["create"]),
    "eviction": ("policy", "v1", "Eviction", ["create"]),
    "exec": ("", "v1", "PodExecOptions", ["create", "get"]),
    "portforward": ("", "v1", "PodPortForwardOptions", ["create", "get"]),
    "token": ("authentication.k8s.io", "v1", "TokenRequest", ["create"]),
    "scale": ("autoscaling", "v1", "Scale", _STATUS_VERBS),
}
"""By subresource, the group, version and kind of its body, and its verbs."""


def groups(registry: Registry) -> dict[str, list[str]]:
    """Versions by group."""
    found: dict[str, list[str]] = {}
    for kind in registry:
        versions = found.setdefault(kind.group, [])
        if kind.version not in versions:
            versions.append(kind.version)
    return found


def core_versions(address: str) -> Body:
    """The answer to `/api`."""
    client = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": client}


def group_list(registry: Registry) -> Body:
    """The answer to `/apis`."""
    named = [_group(group, versions) for group, versions in groups(registry).items() if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": named}


def one_group(registry: Registry, group: str) -> Body:
    """The answer to `/apis/GROUP`."""
    versions = groups(registry).get(group)
    if not group or not versions:
        raise no_such_path()
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, versions)}


def resources(registry: Registry, group: str, version: str) -> Body:
    """The answer to `/api/v1` and `/apis/GROUP/VERSION`."""
    kinds = [each for each in registry if (each.group, each.version) == (group, version)]
    if not kinds:
        raise no_such_path()
    api_version = f"{group}/{version}" if group else version
    listed = [entry for kind in kinds for entry in _legacy(kind)]
    about = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version}
    return {**about, "resources": listed}


def aggregated(registry: Registry, core: bool, version: str) -> Body:
    """Aggregated discovery: of the core group, or of all others."""
    items = [
        {
            "metadata": {"name": group, "creationTimestamp": None},
            "versions": [
                {"version": each, "resources": _aggregated(registry, group, each)}
                | {"freshness": "Current"}
                for each in versions
            ],
        }
        for group, versions in groups(registry).items()
        if core == (not group)
    ]
    about = {"kind": "APIGroupDiscoveryList", "apiVersion": f"apidiscovery.k8s.io/{version}"}
    return {**about, "metadata": {}, "items": items}


def _group(group: str, versions: list[str]) -> Body:
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _legacy(kind: Kind) -> list[Body]:
    about: Body = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.name,
        "verbs": list(kind.verbs) or _VERBS,
    }
    if kind.short_names:
        about["shortNames"] = list(kind.short_names)
    if kind.categories:
        about["categories"] = list(kind.categories)
    return [about, *(_legacy_subresource(kind, subresource) for subresource in kind.subresources)]


def _legacy_subresource(kind: Kind, subresource: str) -> Body:
    group, version, name, verbs = _subresource(kind, subresource)
    entry: Body = {
        "name": f"{kind.plural}/{subresource}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": name,
        "verbs": verbs,
    }
    return entry | (
        {"group": group, "version": version} if subresource in _SUBRESOURCES and group else {}
    )


def _aggregated(registry: Registry, group: str, version: str) -> list[Body]:
    return [_aggregate(kind) for kind in registry if (kind.group, kind.version) == (group, version)]


def _aggregate(kind: Kind) -> Body:
    entry: Body = {
        "resource": kind.plural,
        "responseKind": _response_kind(kind.group, kind.version, kind.name),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs) or _VERBS,
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    if kind.subresources:
        entry["subresources"] = [
            _aggregate_subresource(kind, subresource) for subresource in kind.subresources
        ]
    return entry


def _aggregate_subresource(kind: Kind, subresource: str) -> Body:
    group, version, name, verbs = _subresource(kind, subresource)
    return {
        "subresource": subresource,
        "responseKind": _response_kind(group, version, name),
        "verbs": verbs,
    }


def _subresource(kind: Kind, subresource: str) -> tuple[str, str, str, list[str]]:
    if subresource in _SUBRESOURCES:
        return _SUBRESOURCES[subresource]
    verbs = {"finalize": ["update"], "log": ["get"]}.get(subresource, _STATUS_VERBS)
    return (kind.group, kind.version, kind.name, verbs)


def _response_kind(group: str, version: str, name: str) -> dict[str, Any]:
    return {"group": group, "version": version, "kind": name}
