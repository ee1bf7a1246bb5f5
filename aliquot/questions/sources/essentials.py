"""What decides of an object, and nothing else: what questions read, and what a snapshot holds.

Of pods, their templates and nodes, what is left is what the structs of `dialects.core.objects`
read: no environment, commands, secrets or mounts. Of annotations, those of Kubernetes and of the
five designs are left, without what kubectl last applied. Images have no names: where a pod that may
start asks for one, it gets a number, and nodes keep the size of what is asked for.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from aliquot.dialects.core.objects import NodeWire, PodTemplate, PodWire, Wire
from aliquot.dialects.core.pods import tagged
from aliquot.errors import UnreachableError
from aliquot.json import Body, seek
from aliquot.kube.api.resource import NODES, PODS, Resource

_DOMAINS = (
    *("aliquot.dev", "koordinator.sh", "volcano.sh", "tensor-fusion.ai"),
    *("nebuly.com", "nebuly.ai", "k8s.io", "kubernetes.io"),
)
"""Whose annotations may decide."""
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_STRUCTS: dict[str, type[Wire]] = {"Pod": PodWire, "Node": NodeWire}
"""The kinds of which there are many, and which are read as a struct alone."""
Item = TypeVar("Item")


class _Metadata(msgspec.Struct):
    rest: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct, Generic[Item]):
    metadata: _Metadata
    items: list[Item] | None = None


_pods = msgspec.json.Decoder(_List[PodWire]).decode
_nodes = msgspec.json.Decoder(_List[NodeWire]).decode
_lists = msgspec.json.Decoder(_List[msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode
_bodies = msgspec.json.Decoder(list[Body]).decode
_body = msgspec.json.Decoder(Body).decode


def page(resource: Resource, answer: bytes) -> tuple[list[Body], str]:
    """What decides of the objects of an answer to a list, and where its next page begins."""
    quick: Callable[[bytes], _List[Any]] | None = _QUICK.get(resource)
    try:
        if quick is not None:
            found = quick(answer)
            return _typed(resource, _bodies(_encode(found.items or []))), found.metadata.rest
    except msgspec.ValidationError:
        pass  # one of them fits no struct: each is read by itself
    try:
        listed = _lists(answer)
        bodies = [_body(each) for each in listed.items or ()]
    except msgspec.DecodeError as error:
        raise UnreachableError(f"{resource.path()}: not a list: {error}", sent=True) from None
    named = [{**each, "apiVersion": resource.api_version, "kind": resource.kind} for each in bodies]
    return [essential(each) for each in named], listed.metadata.rest


_QUICK: dict[Resource, Callable[[bytes], Any]] = {PODS: _pods, NODES: _nodes}
"""The kinds of which there are many, decoded to what is read of them."""


def _typed(resource: Resource, bodies: list[Body]) -> list[Body]:
    for each in bodies:
        each["apiVersion"], each["kind"] = resource.api_version, resource.kind
        _reduce_annotations(each)
    return bodies


def essential(body: Body) -> Body:
    """What decides of one object, as a copy; of one that does not fit its struct, its identity."""
    kind, version = str(body.get("kind")), body.get("apiVersion")
    shape = _STRUCTS.get(kind)
    if shape is not None:
        return {"apiVersion": version, "kind": kind, **_fitting(body, shape)}
    copy = _body(_encode(body))
    metadata = copy.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    _reduce_annotations(copy)
    for holder in _template_holders(copy):
        holder["template"] = _fitting(holder["template"], PodTemplate)
    return copy


def _fitting(body: Any, shape: type[Wire]) -> Body:
    """The fields that a struct reads."""
    try:
        kept: Body = msgspec.to_builtins(msgspec.convert(body, shape))
    except msgspec.ValidationError:
        kept = {"metadata": {key: seek(body, "metadata", key) for key in ("namespace", "name")}}
        kept["spec"] = "left out: it does not fit the schema"
    _reduce_annotations(kept)
    return kept


def _template_holders(body: Body) -> Iterator[Body]:
    """What has pod templates: the spec of a workload, and the tasks of a Volcano Job."""
    spec = body.get("spec")
    tasks = spec.get("tasks") if isinstance(spec, dict) else None
    for each in (spec, *(tasks if isinstance(tasks, list) else ())):
        if isinstance(each, dict) and isinstance(each.get("template"), dict):
            yield each


def _reduce_annotations(body: Body) -> None:
    metadata = body.get("metadata")
    if not isinstance(metadata, dict):
        return
    written = metadata.get("annotations")
    if isinstance(written, dict):
        metadata["annotations"] = {key: value for key, value in written.items() if _may_decide(key)}


def _may_decide(key: str) -> bool:
    domain = key.partition("/")[0]
    return key != _LAST_APPLIED and any(
        domain == each or domain.endswith(f".{each}") for each in _DOMAINS
    )


def number_images(bodies: Sequence[Body]) -> None:
    """Put numbers in the place of the images that pods may start with, and drop all others."""
    numbers: dict[str, str] = {}
    for spec in _pod_specs(bodies):
        for container in _containers(spec):
            image = container.pop("image", None)
            if isinstance(image, str) and not spec.get("nodeName"):
                (named,) = tagged((image,))
                container["image"] = numbers.setdefault(named, f"image-{len(numbers)}:1")
    for node in (each for each in bodies if each.get("kind") == "Node"):
        status = node.get("status")
        if isinstance(status, dict) and "images" in status:
            status["images"] = list(_numbered(status["images"] or (), numbers))


def _numbered(images: Iterable[Any], numbers: dict[str, str]) -> Iterator[Body]:
    for image in images:
        names = [numbers[name] for name in image.get("names") or () if name in numbers]
        if names:
            yield {**image, "names": names}


def _pod_specs(bodies: Iterable[Body]) -> Iterator[Body]:
    """The specs of pods and of pod templates."""
    for body in bodies:
        holders = (
            [body]
            if body.get("kind") == "Pod"
            else [each["template"] for each in _template_holders(body)]
        )
        yield from (each["spec"] for each in holders if isinstance(each.get("spec"), dict))


def _containers(spec: Body) -> Iterator[Body]:
    for word in ("initContainers", "containers"):
        listed = spec.get(word)
        yield from (each for each in listed or () if isinstance(each, dict))
