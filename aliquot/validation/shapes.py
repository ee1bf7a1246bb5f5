"""The shape of a manifest: fields, versions and types, by the schema of its kind.

`kubectl apply` refuses an unknown field, an unknown version and a value of the wrong type; so does
`aliquot validate`, with the nearest known word. A simulation refuses unknown fields only: a type
that it does not read, or an old version, stops nothing. An object that carries uid and
resourceVersion was accepted by a server, perhaps one that is newer than the schemas: its unknown
fields are counted, and nothing else is checked.
"""

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.findings import Finding, Severity
from aliquot.dialects.core.manifest import title_of
from aliquot.dialects.core.schema import QUANTITY_PATTERN, Schema
from aliquot.dialects.schemas import known_kinds, metadata, names
from aliquot.dialects.schemas.known_kinds import group_of
from aliquot.dialects.schemas.metadata import Problem
from aliquot.dialects.schemas.misfits import (
    Misfit,
    Steps,
    misfits,
    schema_of,
    unknown_fields,
)
from aliquot.dialects.schemas.quick_fit import fits
from aliquot.json import Body, seek, type_name, without_nulls

_TYPES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "nothing",
    "number": "a number",
    "object": "an object",
    "string": "text",
}
_CUTOFFS = (0.8, 0.6)
"""How alike two words are: what is nearly the same word counts before the same word elsewhere, and
that before what is somewhat alike."""
_LEVELS = 2
"""How far below its place a misplaced field is looked for: `spec.template.spec` in a Deployment."""


@dataclass(slots=True)
class Shape:
    """What is wrong with the shape of one manifest."""

    unknown: list[Finding] = field(default_factory=list)
    """Unknown fields: errors, or warnings where a server keeps them."""
    refusals: list[Finding] = field(default_factory=list)
    """What an API server refuses, and a simulation may be able to read."""
    newer: list[str] = field(default_factory=list)
    """Unknown fields of an object that a server has accepted, without the indexes of lists."""
    misfit_steps: list[Steps] = field(default_factory=list)
    """The places of values that do not fit."""


def check_shape(document: Document) -> Shape:
    """Check a manifest against the schema of its kind; an unknown kind has no schema."""
    body = document.body
    api_version, kind = body.get("apiVersion"), body.get("kind")
    shape = Shape()
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return shape
    known = known_kinds.versions(group_of(api_version), kind)
    if not known:
        _check_templates(document, api_version, kind, shape)
        return shape
    if api_version not in known:
        _unknown_version(document, known, shape)
        return shape
    schema = known_kinds.schema(api_version, kind)
    assert schema is not None
    if not fits(api_version, kind)(body):
        _check(document, schema, shape)
    if not was_accepted(body) and all(steps[0] != "metadata" for steps in shape.misfit_steps):
        _check_metadata(document, shape)
    _check_templates(document, api_version, kind, shape)
    return shape


def _check_templates(document: Document, api_version: str, kind: str, shape: Shape) -> None:
    for at, template in known_kinds.templates(api_version, kind, document.body):
        _check_template(document, template, at, shape)


def was_accepted(body: Body) -> bool:
    """Does an object carry what only a server gives it?"""
    return bool(seek(body, "metadata", "uid")) and bool(seek(body, "metadata", "resourceVersion"))


def path(steps: Steps) -> str:
    """A path as findings name it: `spec.containers[0].resources.requests[cpu]`."""
    words = (f".{step}" if type(step) is str and "." not in step else f"[{step}]" for step in steps)
    return "".join(words).removeprefix(".")


def _unknown_version(document: Document, known: tuple[str, ...], shape: Shape) -> None:
    api_version, kind = document.body["apiVersion"], document.body["kind"]
    if was_accepted(document.body):
        shape.newer.append("apiVersion")
        return
    close = difflib.get_close_matches(api_version, known, 1, 0)
    problem = f"unknown version {api_version} of {kind}; did you mean {close[0]}?"
    shape.refusals.append(_finding(document, "error", "apiVersion", problem))


def _check(document: Document, schema: Schema, shape: Shape) -> None:
    unknown = unknown_fields(schema, document.body, schema["properties"]["metadata"])
    if was_accepted(document.body):
        shape.newer += [_without_indexes(steps) for steps in unknown]
        return
    shape.unknown += [_unknown(document, "error", schema, steps) for steps in unknown]
    for each in misfits(schema, without_nulls(document.body)):
        shape.misfit_steps.append(each.steps)
        shape.refusals.append(_finding(document, "error", path(each.steps), _words(each)))


def _check_metadata(document: Document, shape: Shape) -> None:
    """Names, labels and the like; unquoted labels are a warning of their own."""
    written = document.body.get("metadata") or {}
    quoted = {
        word: {key: value for key, value in (written.get(word) or {}).items() if _is_text(value)}
        for word in ("labels", "annotations")
    }
    found = list(metadata.problems({**written, **quoted}))
    name, is_ours = written.get("name"), _is_ours(document)
    if name and is_ours:
        found += [Problem("metadata.name", name, each) for each in names.subdomain(name)]
    for each in found:
        if each.field.startswith("metadata.ownerReferences[") and not is_ours:
            continue  # a pod of a file may name its owner by kind and name, and no more
        where = f"{each.field}[{_key(each, quoted)}]" if _key(each, quoted) else each.field
        problem = f"{each.value!r}: {each.detail}"
        shape.refusals.append(_finding(document, "error", where, problem))


def _is_ours(document: Document) -> bool:
    return known_kinds.is_ours(document.body["apiVersion"], document.body["kind"])


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _key(problem: Problem, quoted: dict[str, Body]) -> str:
    """The key of a label or annotation that a problem is about; empty for other fields."""
    values: Body = quoted.get(problem.field.removeprefix("metadata."), {})
    return next((key for key, value in values.items() if problem.value in (key, value)), "")


def _check_template(document: Document, template: Any, at: Steps, shape: Shape) -> None:
    """Warn of what a pod template has that pods do not, where servers keep any field of it."""
    if not isinstance(template, dict):
        return
    schema = known_kinds.pod_template()
    unknown = unknown_fields(schema, template, schema["properties"]["metadata"])
    if was_accepted(document.body):
        shape.newer += [_without_indexes((*at, *steps)) for steps in unknown]
        return
    for steps in unknown:
        shape.unknown.append(_unknown(document, "warning", schema, steps, at))


def _unknown(
    document: Document, severity: Severity, schema: Schema, steps: Steps, at: Steps = ()
) -> Finding:
    where = path((*at, *steps))
    meant = _nearest(_schema_at(schema, steps[:-1]), str(steps[-1]))
    hint = f"; did you mean {path((*at, *steps[:-1], *meant))}?" if meant else ""
    return _finding(document, severity, where, f"unknown field {where}{hint}")


def _schema_at(schema: Schema, steps: Steps) -> Schema:
    """The schema of the record that a path leads to."""
    for step in steps:
        inner = schema.get("items") if isinstance(step, int) else schema_of(schema, str(step))
        schema = inner if isinstance(inner, dict) else {}
    return schema


def _nearest(schema: Schema, name: str) -> Steps:
    """The path, from its record, of the field that an unknown one was probably meant to be."""
    known = list(schema.get("properties", {}))
    for each in known:
        if each.lower() == name.lower():
            return (each,)
    for close in (difflib.get_close_matches(name, known, 1, cutoff) for cutoff in _CUTOFFS):
        if close:
            return (close[0],)
        if below := next(_below(schema, name, ()), None):
            return below
    return ()


def _below(schema: Schema, name: str, steps: Steps) -> Iterator[Steps]:
    """Where the records of a record have a field of this name."""
    for field_name, inner in schema.get("properties", {}).items():
        found = (*steps, field_name)
        if name in inner.get("properties", {}):
            yield (*found, name)
        elif len(found) < _LEVELS:
            yield from _below(inner, name, found)


def _without_indexes(steps: Steps) -> str:
    words = ("[]" if isinstance(step, int) else f".{step}" for step in steps)
    return "".join(words).removeprefix(".")


def _words(found: Misfit) -> str:
    """A misfit in plain words."""
    wanted, value = found.wanted, found.value
    match found.rule:
        case "type":
            expected = " or ".join(_TYPES[each] for each in wanted)
            return f"expected {expected}, got {_TYPES[type_name(value)]}"
        case "oneOf" | "pattern" if wanted in (None, QUANTITY_PATTERN):
            return f"{value!r} is not a quantity, such as 2, 500m or 10Gi"
        case "enum":
            return f"{value!r} is none of {', '.join(map(str, wanted))}"
        case "required":
            return "is missing"
        case "unique":
            return f"{value!r} stands here already"
        case "minimum" | "maximum":
            beyond = {"minimum": "below", "maximum": "above"}[found.rule]
            return f"{value} is {beyond} {wanted}"
        case "minItems" | "minProperties" | "minLength":
            return f"must hold at least {wanted}"
        case "maxItems" | "maxProperties" | "maxLength":
            return f"must hold at most {wanted}"
        case "format" if wanted == "date-time":
            return f"{value!r} is not a time such as 2024-05-01T12:00:00Z"
    return f"{value!r} does not fit: {found.rule} {wanted}"


def _finding(document: Document, severity: Severity, where: str, problem: str) -> Finding:
    title = title_of(document.body)
    return Finding(severity, document.place, title, where, problem, file=document.source)


def count_newer(found: Iterable[tuple[Document, Shape]]) -> list[Finding]:
    """One warning for each unknown field of a kind, with the number of objects that have it."""
    counts: dict[tuple[str, str], int] = {}
    first: dict[tuple[str, str], Document] = {}
    for document, shape in found:
        for name in dict.fromkeys(shape.newer):
            counted = (f"{document.body['apiVersion']} {document.body['kind']}", name)
            counts[counted] = counts.get(counted, 0) + 1
            first.setdefault(counted, document)
    return [_newer(first[each], each[1], number) for each, number in counts.items()]


def _newer(document: Document, name: str, count: int) -> Finding:
    body = document.body
    if name == "apiVersion":
        unknown = f"unknown version {body['apiVersion']} of {body['kind']}"
    else:
        unknown = f"unknown field {name} of {body['apiVersion']} {body['kind']}"
    where = "object has it" if count == 1 else "objects have it"
    problem = f"{unknown}, which a server has accepted: {count} {where}; it is not considered"
    return _finding(document, "warning", name, problem)
