"""Every kind that is known here, with the schema that a manifest of it must fit.

Kubernetes' own kinds are those of one release (`kubernetes`), the others those of the five designs
(`dialects.crds`): what an API server with these definitions accepts. Status and managed fields are
left open, because servers and controllers write them; so are the values of labels and annotations,
because unquoted ones are read as they were meant.
"""

import difflib
from collections.abc import Iterable
from functools import cache
from typing import Any

from aliquot.dialects import crds
from aliquot.dialects.core.manifest import VOLCANO_JOBS
from aliquot.dialects.core.schema import Schema, anything
from aliquot.dialects.schemas import kubernetes
from aliquot.dialects.schemas.misfits import Steps
from aliquot.json import Body, seek

_ANYTHING: Schema = {"x-kubernetes-preserve-unknown-fields": True}
_WORDS: Schema = {**anything(), "nullable": True}


@cache
def schema(api_version: str, kind: str) -> Schema | None:
    """The schema of manifests of a kind; None if the kind or its version is unknown."""
    found = kubernetes.schema(api_version, kind) or _custom().get((api_version, kind))
    if found is None:
        return None
    lenient: Schema = _lenient(found, {})
    properties = {**lenient["properties"], "metadata": _metadata(), "status": _ANYTHING}
    return {**lenient, "properties": properties}


def is_ours(api_version: str, kind: str) -> bool:
    """Is it a kind of the five designs, in a known version?"""
    return (api_version, kind) in _custom()


@cache
def versions(group: str, kind: str) -> tuple[str, ...]:
    """The known api versions of a kind of a group, stable ones first."""
    found = [each for each, name in _all() if name == kind and group_of(each) == group]
    return tuple(sorted(found, key=lambda each: ("alpha" in each or "beta" in each, each)))


def group_of(api_version: str) -> str:
    """The group of an api version; empty for the core group."""
    return api_version.rpartition("/")[0]


def nearest_kind(api_version: str, kind: str) -> str | None:
    """The known kind that an unknown one was probably meant to be, such as `apps/v1 Deployment`.

    The same kind of another group counts before a kind of another name; of several, the one whose
    group is spelled most alike.
    """
    same = [each for each in _all() if each[1].lower() == kind.lower()]
    if not same:
        of_group = [each for each in _all() if group_of(each[0]) == group_of(api_version)]
        close = difflib.get_close_matches(kind, sorted({name for _, name in of_group}), 1, 0.75)
        same = [each for each in of_group if each[1] in close]
    if not same:
        return None
    best = max(same, key=lambda each: _likeness(group_of(each[0]), group_of(api_version)))
    return f"{best[0]} {best[1]}"


def templates(api_version: str, kind: str, body: Body) -> Iterable[tuple[Steps, Any]]:
    """The pod templates that the schema of a kind leaves open, with their paths."""
    if (group_of(api_version), kind) != (VOLCANO_JOBS, "Job"):
        return
    tasks = seek(body, "spec", "tasks")
    for index, task in enumerate(tasks if isinstance(tasks, list) else ()):
        yield ("spec", "tasks", index, "template"), seek(task, "template")


@cache
def pod_template() -> Schema:
    """The schema of a pod template."""
    found: Schema = _lenient(kubernetes.record("PodTemplateSpec"), {})
    return found


def _likeness(one: str, other: str) -> float:
    """How much two groups are alike; nothing below a half, where the first known kind is taken."""
    ratio = difflib.SequenceMatcher(None, one, other).ratio()
    return ratio if ratio > 0.5 else 0


@cache
def _custom() -> dict[tuple[str, str], Schema]:
    found = {}
    for each in crds.DEFINITIONS:
        (version,) = each.body()["spec"]["versions"]
        shape = version["schema"]["openAPIV3Schema"]
        found[f"{each.group}/{each.version}", each.kind] = shape
    return found


@cache
def _all() -> tuple[tuple[str, str], ...]:
    return (*_custom(), *kubernetes.kinds())


@cache
def _metadata() -> Schema:
    whole = kubernetes.record("ObjectMeta")
    open_parts = {
        "labels": _WORDS,
        "annotations": _WORDS,
        "managedFields": _ANYTHING,
    }
    return {**whole, "properties": {**whole["properties"], **open_parts}}


def _lenient(shape: Any, done: dict[int, Any]) -> Any:
    """A schema in which all metadata are those of manifests. `done` are its parts by identity."""
    if not isinstance(shape, dict):
        return shape
    if id(shape) in done:
        return done[id(shape)]
    if shape.get("properties") is kubernetes.record("ObjectMeta")["properties"]:
        return _metadata()
    found = done[id(shape)] = dict(shape)
    if "properties" in shape:
        inner = shape["properties"].items()
        found["properties"] = {name: _lenient(each, done) for name, each in inner}
    for word in ("items", "additionalProperties"):
        if word in shape:
            found[word] = _lenient(shape[word], done)
    return found
