"""What users may write into the metadata of an object of any kind, beyond its types.

The embedded API server refuses by these rules, and `aliquot validate` foretells it. Details are in
the words of Kubernetes.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from aliquot.dialects.schemas import names
from aliquot.json import Body

_STANDARD_FINALIZERS = (
    "kubernetes",
    "orphan",
    "foregroundDeletion",
    "customresourcecleanup.apiextensions.k8s.io",
)


class Problem(NamedTuple):
    """A value of metadata that is refused."""

    field: str
    value: Any
    detail: str


def problems(metadata: Body) -> Iterator[Problem]:
    """The problems of metadata whose types are right; names are a matter of their kind."""
    namespace = metadata.get("namespace")
    if namespace:
        yield from _each("metadata.namespace", namespace, names.label_name(namespace))
    yield from label_problems(metadata.get("labels") or {}, "metadata.labels")
    for key in metadata.get("annotations") or {}:
        yield from _each("metadata.annotations", key, names.label_key(key.lower()))
    yield from _owners(metadata.get("ownerReferences") or [])
    for index, finalizer in enumerate(metadata.get("finalizers") or ()):
        yield from _each("metadata.finalizers", finalizer, names.label_key(finalizer))
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield Problem(f"metadata.finalizers[{index}]", finalizer, detail)


def label_problems(labels: Body, field: str) -> Iterator[Problem]:
    """The problems of labels in any field: of keys and of values."""
    for key, value in labels.items():
        yield from _each(field, key, names.label_key(key))
        yield from _each(field, value, names.label_value(value))


def _owners(owners: list[Body]) -> Iterator[Problem]:
    for index, owner in enumerate(owners):
        field = f"metadata.ownerReferences[{index}]"
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                yield Problem(f"{field}.{name}", owner.get(name) or "", "must not be empty")
    controllers = [
        f"{each.get('kind')}/{each.get('name')}" for each in owners if each.get("controller")
    ]
    if len(controllers) > 1:
        problem = "Only one reference can have Controller set to true"
        detail = f'{problem}. Found "true" in references for {" and ".join(controllers[:2])}'
        yield Problem("metadata.ownerReferences", owners, detail)


def _each(field: str, value: str, details: list[str]) -> Iterator[Problem]:
    yield from (Problem(field, value, detail) for detail in details)
