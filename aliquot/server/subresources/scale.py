"""The scale subresource: desired and current replicas, in one form for all kinds."""

from collections.abc import Callable
from typing import Any

from aliquot.dialects.core.objects import INT32_MAX
from aliquot.json import Body
from aliquot.server.http.refusals import bad_request, invalid
from aliquot.server.kinds.kind import Kind
from aliquot.server.rules.causes import invalid as invalid_value
from aliquot.server.storage.entry import Entry


def scale(kind: Kind, entry: Entry) -> Body:
    """The Scale of an object."""
    body, paths = entry.read(), _paths(kind)
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    metadata = {key: body["metadata"][key] for key in kept if key in body["metadata"]}
    status: Body = {"replicas": _at(body, paths[1]) or 0}
    if selector := _selector(body, paths[2]):
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": _at(body, paths[0]) or 0},
        "status": status,
    }


def apply_scale(kind: Kind, name: str, wanted: Any) -> Callable[[Body], Body]:
    """The update that a Scale makes."""
    replicas = (wanted.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas > INT32_MAX:
        raise bad_request("spec.replicas of a Scale must be a whole number")
    if replicas < 0:
        detail = "must be greater than or equal to 0"
        raise invalid(kind, name, [invalid_value("spec.replicas", replicas, detail)])
    version = (wanted.get("metadata") or {}).get("resourceVersion")

    def edit(body: Body) -> Body:
        *above, last = _paths(kind)[0]
        inner = body
        for word in above:
            inner = inner.setdefault(word, {})
        inner[last] = replicas
        if version:
            body["metadata"]["resourceVersion"] = str(version)
        return body

    return edit


def _paths(kind: Kind) -> tuple[list[str], list[str], list[str]]:
    """The paths of desired replicas, current replicas and selector."""
    if kind.served is None:
        return ["spec", "replicas"], ["status", "replicas"], ["spec", "selector"]
    scale_paths = (kind.served.get("subresources") or {}).get("scale") or {}
    wanted = scale_paths.get("specReplicasPath", ".spec.replicas")
    counted = scale_paths.get("statusReplicasPath", ".status.replicas")
    selector = scale_paths.get("labelSelectorPath", "")
    return (
        wanted.strip(".").split("."),
        counted.strip(".").split("."),
        selector.strip(".").split("."),
    )


def _at(body: Body, path: list[str]) -> Any:
    found: Any = body
    for word in path:
        found = found.get(word) if isinstance(found, dict) else None
    return found


def _selector(body: Body, path: list[str]) -> str:
    found = _at(body, path)
    if isinstance(found, str):
        return found
    exact = (found or {}).get("matchLabels") or {}
    return ",".join(f"{key}={value}" for key, value in sorted(exact.items()))
