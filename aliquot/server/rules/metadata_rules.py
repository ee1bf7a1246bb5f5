"""The validation of metadata, for objects of every kind, on create and on update."""

from collections.abc import Callable, Iterator
from typing import Any

from aliquot.dialects.schemas import names
from aliquot.dialects.schemas.metadata import label_problems, problems
from aliquot.json import Body, same
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
_FIXED = ("name", "namespace", "uid", "creationTimestamp")


def check_metadata(kind: str, metadata: Body) -> Iterator[Cause]:
    """Problems of the metadata of an object, after generateName was used."""
    yield from _check_name(kind, metadata)
    yield from (invalid(*each) for each in problems(metadata))
    yield from _check_size(metadata.get("annotations") or {})


def check_labels(labels: Body, field: str) -> Iterator[Cause]:
    """Problems of labels in any field: of keys and of values."""
    yield from (invalid(*each) for each in label_problems(labels, field))


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


def _check_size(annotations: Body) -> Iterator[Cause]:
    size = sum(len(key.encode()) + len(str(each).encode()) for key, each in annotations.items())
    if size > _MOST_IN_ANNOTATIONS:
        detail = f"Too long: may not be more than {_MOST_IN_ANNOTATIONS} bytes"
        yield Cause("metadata.annotations", "FieldValueTooLong", detail)


def _each(field: str, value: str, rule: Rule) -> Iterator[Cause]:
    yield from (invalid(field, value, problem) for problem in rule(value))
