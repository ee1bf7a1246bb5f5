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
from aliquot.dialects.frameworks.fields import Fields
from aliquot.dialects.frameworks.table import BY_KIND
from aliquot.dialects.schemas import kubernetes
from aliquot.dialects.schemas.misfits import Steps
from aliquot.json import Body, seek

_ALIKE = 0.7
"""How alike the domains of two groups are that may be meant for each other: `k8s.io` and `x-k8s.io`
(0.86) are, `koordinator.sh` and `volcano.sh` (0.5) are not."""
_RELATED = {"koordinator.sh": "scheduling.sigs.k8s.io"}
"""By domain, the group of another domain that has the quotas and gangs of a design."""
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
    group is spelled most alike. Where the domain is another, so is the kind: a CronJob of
    batch.volcano.sh is none of Kubernetes'. Only Kubernetes has groups without a domain.
    """
    group = group_of(api_version)
    alike = [each for each in _all() if "." not in group or _likeness(group_of(each[0]), group)]
    same = [each for each in alike if each[1].lower() == kind.lower()]
    if not same:
        of_group = [each for each in _all() if group_of(each[0]) == group]
        close = difflib.get_close_matches(kind, sorted({name for _, name in of_group}), 1, 0.75)
        same = [each for each in of_group if each[1] in close]
    if not same:
        return None
    best = max(same, key=lambda each: _likeness(group_of(each[0]), group))
    return f"{best[0]} {best[1]}"


def templates(api_version: str, kind: str, body: Body) -> Iterable[tuple[Steps, Any]]:
    """The pod templates that the schema of a kind leaves open, or a job of a framework has.

    With their paths.
    """
    row = BY_KIND.get(kind)
    if row is not None and row.group == group_of(api_version):
        fields = Fields(lambda *_: None, body, ())
        for role in {each.steps: each for each in row.roles(fields.record(*row.spec))}.values():
            yield role.steps, role.template
        return
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


def _likeness(known: str, group: str) -> float:
    """How much a known group is like a group; 0 for two that have little in common."""
    if _RELATED.get(_domain(group)) == known:
        return 1
    of_domains = difflib.SequenceMatcher(None, _domain(known), _domain(group)).ratio()
    return difflib.SequenceMatcher(None, known, group).ratio() if of_domains > _ALIKE else 0


def _domain(group: str) -> str:
    """The last two words of a group: `scheduling.sigs.k8s.io` is of `k8s.io`."""
    return ".".join(group.split(".")[-2:])


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
