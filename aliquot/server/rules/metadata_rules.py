"""The validation of metadata, for objects of every kind, on create and on update."""

from collections.abc import Callable, Iterator
from typing import Any

from aliquot.json import Body, same
from aliquot.server.rules import names
from aliquot.server.rules.causes import Cause, forbidden, invalid, required

Rule = Callable[[str], list[str]]

_NAMES: dict[str, Rule] = {
    "ClusterRole": names.path_segment,
    "ClusterRoleBinding": names.path_segment,
    "Namespace": names.label_name,
    "Role": names.path_segment,
    "RoleBinding": names.path_segment,
    "Service": names.service_name,
}
_MOST_IN_ANNOTATIONS = 256 * 1024
"""Bytes of all annotations together; the limit of Kubernetes."""
_STANDARD_FINALIZERS = (
    "kubernetes",
    "orphan",
    "foregroundDeletion",
    "customresourcecleanup.apiextensions.k8s.io",
)
_FIXED = ("name", "namespace", "uid", "creationTimestamp")


def check_metadata(kind: str, metadata: Body) -> Iterator[Cause]:
    """Problems of the metadata of an object, after generateName was used."""
    yield from _check_name(kind, metadata)
    namespace = metadata.get("namespace")
    if namespace:
        yield from _each("metadata.namespace", namespace, names.label_name)
    yield from check_labels(metadata.get("labels") or {}, "metadata.labels")
    yield from _check_annotations(metadata.get("annotations") or {})
    yield from _check_owners(metadata.get("ownerReferences") or [])
    for index, finalizer in enumerate(metadata.get("finalizers") or ()):
        yield from _each("metadata.finalizers", finalizer, names.label_key)
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"metadata.finalizers[{index}]", finalizer, detail)


def check_labels(labels: Body, field: str) -> Iterator[Cause]:
    """Problems of labels in any field: of keys and of values."""
    for key, value in labels.items():
        yield from _each(field, key, names.label_key)
        yield from _each(field, value, names.label_value)


def check_metadata_update(old: Body, new: Body) -> Iterator[Cause]:
    """Immutable fields of the metadata that changed."""
    for name in _FIXED:
        if old.get(name) != new.get(name):
            yield invalid(f"metadata.{name}", new.get(name), "field is immutable")
    if (new.get("generation") or 0) < (old.get("generation") or 0):
        field = "metadata.generation"
        yield invalid(field, new.get("generation") or 0, "must not be decremented")
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if old.get(name) != new.get(name):
            yield invalid(f"metadata.{name}", new.get(name), "field is immutable")
    added = [
        each for each in new.get("finalizers") or () if each not in (old.get("finalizers") or ())
    ]
    if old.get("deletionTimestamp") and added:
        words = ", ".join(f'"{each}"' for each in added)
        problem = "no new finalizers can be added if the object is being deleted"
        detail = f"{problem}, found new finalizers []string{{{words}}}"
        yield forbidden("metadata.finalizers", detail)


def changed(field: str, old: Any, new: Any) -> Iterator[Cause]:
    """An immutable field that changed."""
    if not same(old, new):
        yield invalid(field, new, "field is immutable")


def _check_name(kind: str, metadata: Body) -> Iterator[Cause]:
    rule = _NAMES.get(kind, names.subdomain)
    name = metadata.get("name")
    if name:
        yield from _each("metadata.name", name, rule)
    else:
        yield required("metadata.name", "name or generateName is required")


def _check_annotations(annotations: Body) -> Iterator[Cause]:
    field = "metadata.annotations"
    for key in annotations:
        yield from _each(field, key, lambda text: names.label_key(text.lower()))
    size = sum(len(key.encode()) + len(str(each).encode()) for key, each in annotations.items())
    if size > _MOST_IN_ANNOTATIONS:
        detail = f"Too long: may not be more than {_MOST_IN_ANNOTATIONS} bytes"
        yield Cause(field, "FieldValueTooLong", detail)


def _check_owners(owners: list[Body]) -> Iterator[Cause]:
    for index, owner in enumerate(owners):
        field = f"metadata.ownerReferences[{index}]"
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                yield invalid(f"{field}.{name}", owner.get(name) or "", "must not be empty")
    controllers = [
        f"{each.get('kind')}/{each.get('name')}" for each in owners if each.get("controller")
    ]
    if len(controllers) > 1:
        problem = "Only one reference can have Controller set to true"
        detail = f'{problem}. Found "true" in references for {" and ".join(controllers[:2])}'
        yield invalid("metadata.ownerReferences", owners, detail)


def _each(field: str, value: str, rule: Rule) -> Iterator[Cause]:
    yield from (invalid(field, value, problem) for problem in rule(value))
