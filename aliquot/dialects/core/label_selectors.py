"""Label selectors of the API, as requirements of the engine.

Requirements are sorted, and each stands there once, so that equal selectors are equal values
however they were written. Without requirements a selector matches everything; that a selector which
is not there matches nothing is up to the reader of the field.
"""

from aliquot.dialects.core.labels import text_map
from aliquot.dialects.core.manifest import Manifest, convert
from aliquot.dialects.core.objects import (
    LabelSelector,
    SelectionWire,
    SelectorRequirement,
    WorkloadWire,
)
from aliquot.engine import Requirement
from aliquot.errors import InputError

_WITH_VALUES = ("In", "NotIn")
_WITHOUT_VALUES = ("DoesNotExist", "Exists")
_OPERATORS = tuple(sorted((*_WITH_VALUES, *_WITHOUT_VALUES)))
_BY_LABELS = ("ReplicationController", "Service")
"""The kinds whose selector is a map of labels."""


def requirements(selector: LabelSelector, manifest: Manifest, field: str) -> list[Requirement]:
    """The requirements of a selector, in the order in which they stand there."""
    exact = text_map(selector.match_labels, manifest, f"{field}.matchLabels")
    found = [Requirement(key, "In", (value,)) for key, value in exact.items()]
    for index, each in enumerate(selector.match_expressions or []):
        found.append(_requirement(each, manifest, f"{field}.matchExpressions[{index}]"))
    return found


def canonical(found: list[Requirement]) -> tuple[Requirement, ...]:
    """The same requirements, each once, in an order of their own."""
    return tuple(sorted(set(found), key=lambda each: (each.key, each.operator, each.values)))


def selection(manifest: Manifest) -> tuple[Requirement, ...] | None:
    """The pods that a Service or a workload selects; None without a selector: it selects none."""
    content = manifest.content
    assert isinstance(content, SelectionWire | WorkloadWire)
    written = content.spec.selector if content.spec is not None else None
    if written is None:
        return None
    field = "spec.selector"
    if manifest.kind in _BY_LABELS:
        exact = text_map(written, manifest, field)
        return canonical([Requirement(key, "In", (value,)) for key, value in exact.items()])
    try:
        selector = convert(written, LabelSelector, manifest.place)
    except InputError as error:
        manifest.refuse(f"{field}.{error.field}", error.problem)
        return None
    return canonical(requirements(selector, manifest, field))


def _requirement(written: SelectorRequirement, manifest: Manifest, field: str) -> Requirement:
    values = tuple(sorted(set(written.values or ())))
    if not written.key:
        manifest.refuse(f"{field}.key", "is missing")
    if written.operator not in _OPERATORS:
        known = ", ".join(_OPERATORS)
        manifest.refuse(f"{field}.operator", f"{written.operator!r} is none of {known}")
    elif written.operator in _WITH_VALUES and not values:
        manifest.refuse(f"{field}.values", f"is missing; {written.operator} compares with values")
    elif written.operator in _WITHOUT_VALUES and values:
        manifest.refuse(f"{field}.values", f"must be empty: {written.operator} asks for the key")
    return Requirement(written.key, written.operator, values)
