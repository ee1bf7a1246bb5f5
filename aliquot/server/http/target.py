"""The target of a request, read from its path: kind, namespace, name and subresource."""

from dataclasses import dataclass

from aliquot.server.http.refusals import no_such_path
from aliquot.server.kinds.kind import Kind
from aliquot.server.kinds.registry import Registry

_NAMESPACE_SUBRESOURCES = ("status", "finalize")
"""Of `/namespaces/NAME/...`: any other word there is the plural of a kind."""


@dataclass(frozen=True, slots=True)
class Target:
    """A kind and, where the path names them, a namespace, an object and a subresource."""

    kind: Kind
    namespace: str | None = None
    """None: all namespaces, or the kind is cluster-scoped."""
    name: str = ""
    subresource: str = ""


def target(path: str, registry: Registry) -> Target:
    """Read a path such as `/apis/apps/v1/namespaces/default/deployments/web/scale`."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise no_such_path()
    namespace: str | None = None
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
        namespace, rest = rest[1], rest[2:]
    if (group, rest) == ("", ["bindings"]) and namespace:
        return Target(registry.require("Pod"), namespace, "", "binding")
    kind = registry.find(group, version, rest[0])
    if kind is None or len(rest) > 3 or "" in rest or namespace == "":
        raise no_such_path()
    if kind.namespaced != (namespace is not None) and (len(rest) > 1 or not kind.namespaced):
        raise no_such_path()
    name, subresource = (*rest[1:], "", "")[:2]
    if subresource and subresource not in kind.subresources:
        raise no_such_path()
    return Target(kind, namespace, name, subresource)
