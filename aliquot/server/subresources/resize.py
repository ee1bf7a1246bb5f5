"""The resize subresource of pods: their containers' cpu and memory change while they run."""

from collections.abc import Callable
from typing import Any

from aliquot.json import Body
from aliquot.server.http.refusals import bad_request

_RESOURCES = "resources"


def apply_resize(wanted: Any) -> Callable[[Body], Body]:
    """The update that a pod sent to this subresource makes: of resources, and nothing else."""
    spec = wanted.get("spec") if isinstance(wanted, dict) else None
    containers = spec.get("containers") if isinstance(spec, dict) else None
    if not isinstance(containers, list) or not all(isinstance(each, dict) for each in containers):
        raise bad_request("a Pod is expected")
    asked = {each.get("name"): each.get(_RESOURCES) for each in containers}

    def edit(body: Body) -> Body:
        for each in body["spec"]["containers"]:
            if asked.get(each["name"]) is not None:
                each[_RESOURCES] = asked[each["name"]]
        return body

    return edit


def with_resources_of(old: Body, new: Body) -> Body:
    """A pod as it was, with its containers' resources as they are now.

    What differs from it is what a resize may not change.
    """
    now = {each["name"]: each.get(_RESOURCES) for each in new["spec"]["containers"]}
    containers = [
        {**each, _RESOURCES: now[each["name"]]} if now.get(each["name"]) is not None else each
        for each in old["spec"]["containers"]
    ]
    return {**old, "spec": {**old["spec"], "containers": containers}}
