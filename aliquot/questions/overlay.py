"""Changed objects laid over others by identity, as `kubectl apply` would leave them.

An object of the same kind, namespace and name takes the place of the old one. What a server or a
scheduler wrote of the old one stays, as an apply leaves it: when it was created, its status, the
node of a pod. Objects that a timeline brings later are found by identity, too.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from aliquot.dialects.core import pods
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import Key, key, owner_of, read
from aliquot.errors import ArgumentError
from aliquot.json import Body, fresh
from aliquot.questions.cures.nodes import HOSTNAME, free_name, like

_KEPT_METADATA = (
    *("uid", "resourceVersion", "generation", "creationTimestamp", "ownerReferences"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations"),
)
_OPTION = "--delete"


def identity(document: Document) -> Key | None:
    """The key of an object; None for one without a name, such as a Timeline."""
    metadata = document.body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not name or not isinstance(metadata, dict):
        return None
    namespace = metadata.get("namespace")
    return key(
        str(document.body.get("kind")), namespace if isinstance(namespace, str) else None, name
    )


def lay_over(documents: Sequence[Document], changed: Iterable[Document]) -> list[Document]:
    """The objects with the changed ones in the place of those they are, new ones at the end."""
    found, changed = list(documents), list(changed)
    kinds = {_kind(each) for each in changed}
    places = {identity(each): n for n, each in enumerate(found) if _kind(each) in kinds}
    for each in changed:
        known = identity(each)
        at = places.get(known) if known is not None else None
        if at is None:
            if known is not None:
                places[known] = len(found)
            found.append(each)
        else:
            found[at] = replace(each, body=_applied(found[at].body, each.body))
    return found


def _kind(document: Document) -> str:
    return str(document.body.get("kind"))


def _applied(old: Body, new: Body) -> Body:
    """The new object with what an apply leaves of the old one."""
    body: Body = fresh(new)
    before = old.get("metadata") or {}
    for field in _KEPT_METADATA:
        if field in before and field not in body["metadata"]:
            body["metadata"][field] = before[field]
    if "status" in old and "status" not in body:
        body["status"] = old["status"]
    node = (old.get("spec") or {}).get("nodeName")
    if old.get("kind") == "Pod" and node and isinstance(body.get("spec"), dict):
        body["spec"].setdefault("nodeName", node)
    return body


def without(documents: Sequence[Document], named: Iterable[str]) -> list[Document]:
    """The objects without those that `KIND/NAMESPACE/NAME` or `KIND/NAME` name.

    With a namespace go its objects, with a node its pods, with a workload what it owns.
    """
    found = list(documents)
    for each in named:
        gone = _named(found, each)
        before = len(found)
        found = [d for d in found if not _goes_with(d, gone)]
        if len(found) == before:
            raise ArgumentError(f"{_OPTION} {each}: there is no such object")
    return found


def _named(documents: Iterable[Document], text: str) -> set[Key]:
    """The key that an option names, and those of what the objects of this key own."""
    kind, *rest = text.split("/")
    if not 1 <= len(rest) <= 2 or not all((kind, *rest)):
        raise ArgumentError(f"{_OPTION} {text!r}: expected KIND/NAMESPACE/NAME or KIND/NAME")
    kinds = {str(d.body.get("kind")).lower(): str(d.body.get("kind")) for d in documents}
    kind = kinds.get(kind.lower(), kind)
    gone = {key(kind, rest[0] if len(rest) == 2 else None, rest[-1])}
    while True:
        owned = {k for d in documents if (k := identity(d)) and _owner(d) in gone} - gone
        if not owned:
            return gone
        gone |= owned


def _owner(document: Document) -> Key | None:
    metadata = document.body.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("ownerReferences"):
        return None
    manifest = read(document, check_names=False)
    return owner_of(manifest) if manifest is not None else None


def _goes_with(document: Document, gone: set[Key]) -> bool:
    """Does the object go with those that are deleted?"""
    known = identity(document)
    if known in gone:
        return True
    namespace = known[1] if known is not None else ""
    node = (document.body.get("spec") or {}).get("nodeName") if known else None
    in_namespace = bool(namespace) and ("Namespace", "", namespace) in gone
    return in_namespace or (node is not None and ("Node", "", node) in gone)


def with_nodes(documents: Sequence[Document], number: int, model: str) -> list[Document]:
    """The objects with so many nodes more like this one, and GPUs like its own on each."""
    known = {k: d for d in documents if (k := identity(d)) is not None}
    node = known.get(("Node", "", model))
    if node is None:
        raise ArgumentError(f"--like {model}: there is no such node")
    manifest = read(node)
    assert manifest is not None
    made: list[Document] = []
    taken: set[str] = set()
    for _ in range(number):
        name = free_name(known, model, frozenset(taken))
        taken.add(name)
        made.append(Document(f"--add-nodes, {name}", like(manifest, name)))
        made += _gpus(documents, model, name)
    return [*documents, *made]


def _gpus(documents: Iterable[Document], model: str, name: str) -> Iterator[Document]:
    """The GPUs of a node, on another one."""
    for each in documents:
        status = each.body.get("status")
        if each.body.get("kind") != "GPU" or not isinstance(status, dict):
            continue
        selector = status.get("nodeSelector") or {}
        if selector.get(HOSTNAME) == model:
            body: Any = fresh(each.body)
            own = f"{body['metadata']['name']}-{name}"
            body["metadata"] = {**body["metadata"], "name": own}
            body["status"]["nodeSelector"] = {**selector, HOSTNAME: name}
            yield Document(f"--add-nodes, {own}", body)


def drained(documents: Sequence[Document], node: str) -> tuple[list[Document], list[str]]:
    """The objects with a node cordoned and its pods gone, but for those of DaemonSets; which went.

    A pod of a workload comes back where the workload is among the objects.
    """
    found: list[Document] = []
    gone: list[str] = []
    there = False
    for each in documents:
        known = identity(each)
        if known == ("Node", "", node):
            there = True
            spec = {**(each.body.get("spec") or {}), "unschedulable": True}
            found.append(replace(each, body={**each.body, "spec": spec}))
        elif known is not None and known[0] == "Pod" and _leaves(each, node):
            gone.append(f"{known[1]}/{known[2]}")
        else:
            found.append(each)
    if not there:
        raise ArgumentError(f"--drain {node}: there is no such node")
    return found, gone


def _leaves(document: Document, node: str) -> bool:
    """Does a drain take a pod off this node?"""
    if (document.body.get("spec") or {}).get("nodeName") != node:
        return False
    owner, manifest = _owner(document), read(document)
    ended = manifest is not None and pods.finished(pods.status(manifest))
    return not ended and (owner is None or owner[0] not in ("DaemonSet", "Node"))
