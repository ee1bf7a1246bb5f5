"""The binding subresource: sets the node of a pod, once."""

from dataclasses import replace
from http import HTTPStatus
from typing import Any

import msgspec

from aliquot.errors import RefusalError
from aliquot.json import Body
from aliquot.server.api import Api
from aliquot.server.http.refusals import bad_request, conflict, created
from aliquot.server.kinds.kind import Kind
from aliquot.server.rules.metadata import timestamp


class _Node(msgspec.Struct):
    name: str = ""
    kind: str = "Node"


class _Metadata(msgspec.Struct):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = msgspec.field(default=None, name="resourceVersion")
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Binding(msgspec.Struct):
    target: _Node = msgspec.field(default_factory=_Node)
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


async def bind(api: Api, kind: Kind, namespace: str, name: str, body: Any) -> Body:
    """Bind a pod to the node of a Binding."""
    try:
        binding = msgspec.convert(body, _Binding)
    except msgspec.ValidationError as error:
        raise bad_request(f"Binding: {error}") from None
    _check(binding, name)
    found = api.find(kind, namespace, name)
    pod = found.read()
    if binding.metadata.uid not in (None, "", found.uid):
        raise _refused(
            kind,
            name,
            f"Precondition failed: UID in precondition: {binding.metadata.uid}, "
            f"UID in object meta: {found.uid}",
        )
    if binding.metadata.resource_version not in (None, "", str(found.version)):
        raise conflict(kind, name)
    _check_pod(kind, pod)
    pod["spec"]["nodeName"] = binding.target.name
    for key in ("labels", "annotations"):
        if more := getattr(binding.metadata, key):
            pod["metadata"][key] = {**(pod["metadata"].get(key) or {}), **more}
    _set_scheduled(pod)
    api.store.put(kind.storage, pod)
    await api.store.wait_durable()
    return created()


def pod_name(body: Any) -> str:
    """The pod of a Binding, for the path `/bindings`, which does not name it."""
    metadata = body.get("metadata") if isinstance(body, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not name:
        raise bad_request("a Binding needs the name of its pod")
    return name


def _check(binding: _Binding, name: str) -> None:
    if binding.metadata.name not in (None, "", name):
        raise bad_request(
            f"the name of the object ({str(binding.metadata.name)[:253]}) does not match the name "
            f"on the URL ({name})"
        )
    problem = ""
    if not binding.target.name:
        problem = "target.name: Required value"
    elif binding.target.kind not in ("", "Node"):
        problem = (
            f'target.kind: Unsupported value: "{binding.target.kind[:50]}": '
            'supported values: "Node", "<empty>"'
        )
    if problem:
        field, _, message = problem.partition(": ")
        reason = "FieldValueRequired" if "Required" in message else "FieldValueNotSupported"
        causes = [{"reason": reason, "message": message, "field": field}]
        details = {"name": name, "kind": "Binding", "causes": causes}
        raise RefusalError(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "Invalid",
            f'Binding "{name}" is invalid: {problem}',
            details,
        )


def _check_pod(kind: Kind, pod: Body) -> None:
    name, spec = pod["metadata"]["name"], pod["spec"]
    if "deletionTimestamp" in pod["metadata"]:
        raise _refused(kind, name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
        raise _refused(kind, name, why)
    if spec.get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
        raise _refused(kind, name, why)


def _refused(kind: Kind, name: str, why: str) -> RefusalError:
    return conflict(replace(kind, plural="pods/binding"), name, why)


def _set_scheduled(pod: Body) -> None:
    status = pod.setdefault("status", {})
    others = [each for each in status.get("conditions") or () if each.get("type") != "PodScheduled"]
    condition = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(),
    }
    status["conditions"] = [*others, condition]
