"""Koordinator's labels and annotations on quotas and pods.

Where the design and its implementation spell a key differently, both are read. Values are text, and
maps and lists are JSON in text. Unquoted YAML is read as it was meant, as in the design's own
examples, and `validation.object_rules` warns that an API server would refuse it. Names of other
quotas are returned as written; `quota_index` resolves them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aliquot.dialects.core import amounts
from aliquot.dialects.core.labels import to_text
from aliquot.dialects.core.manifest import KOORDINATOR_PREFIX as PREFIX
from aliquot.dialects.core.manifest import Manifest, first_error, once, refuse_namespace
from aliquot.dialects.core.pod_templates import template_views
from aliquot.engine import Amounts
from aliquot.errors import InputError

NAMESPACE = "koordinator-system"
ROOT = "koordinator-root-quota"
SYSTEM = "koordinator-system-quota"
DEFAULT = "koordinator-default-quota"
SPECIAL = (ROOT, SYSTEM, DEFAULT)

PARENT = (f"{PREFIX}parent", f"{PREFIX}parent-quota-name")
QUOTA = (f"{PREFIX}name", f"{PREFIX}quota-name")
PREEMPTIBLE = f"{PREFIX}preemptible"
IS_PARENT = f"{PREFIX}is-parent"
IS_ROOT = f"{PREFIX}is-root"
LEND = f"{PREFIX}allow-lent-resource"
FORCE = f"{PREFIX}allow-force-update"
TREE = f"{PREFIX}tree-id"
WEIGHT = f"{PREFIX}shared-weight"
NAMESPACES = f"{PREFIX}namespaces"
STRICT = f"{PREFIX}max-strict-check-resource-keys"
PROFILE = f"{PREFIX}profile"
IN_DEFAULT_TREE = f"{PREFIX}ignore-default-tree"
TOTAL = f"{PREFIX}total-resource"
UNSCHEDULABLE = f"{PREFIX}unschedulable-resource"
ADMISSION = f"{PREFIX}admission"
FLAGS = (IS_PARENT, IS_ROOT, LEND, FORCE, IN_DEFAULT_TREE)
FIGURES = frozenset(
    f"{PREFIX}{word}"
    for word in (
        *("runtime", "request", "child-request", "guaranteed", "allocated"),
        *("non-preemptible-request", "non-preemptible-used"),
    )
)
"""The annotations that are written as a quota's status (see `status`); none is read back."""

Labels = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Keys:
    """What a quota's labels and annotations say about its place in a tree."""

    parent: str = ""
    """The parent's bare name; empty on the first level."""
    is_parent: bool = False
    lend: bool = True
    weight: Amounts = ()
    """The shared weight; empty where max is the weight."""
    namespaces: tuple[str, ...] = ()
    tree: str = ""
    """The id of its tree; empty if it has none."""
    forced: bool = False
    """May the mins of its children add up to more than its own (allow-force-update, is-root)?"""
    strict: tuple[str, ...] = ()
    """Resources whose max must not be below what is used."""
    is_root: bool = False
    """Is it the root of the tree of its id?"""
    in_default_tree: bool = False
    """Does the default tree share the nodes of its tree as well (ignore-default-tree)?"""
    total: Amounts | None = None
    """What its tree has to share, as it states it; None if it does not, or unreadably."""


def has_keys(metadata_maps: Sequence[Labels | None]) -> bool:
    """Is any key of these maps Koordinator's, other than figures, which Aliquot writes as well?"""
    found = (key for each in metadata_maps for key in each or ())
    return any(key.startswith(PREFIX) and key not in FIGURES for key in found)


@once
def keys(manifest: Manifest) -> Keys:
    """The keys of a quota; a value that cannot be read is refused by its key."""
    labels = manifest.metadata.labels or {}
    parent = _read_name(labels, PARENT, manifest, "metadata.labels")
    return Keys(
        parent="" if parent == ROOT else parent,
        is_parent=flag_text(labels, IS_PARENT) == "true",
        lend=flag_text(labels, LEND) != "false",
        weight=_weight(manifest),
        namespaces=_namespaces(manifest),
        tree=_read_name(labels, (TREE,), manifest, "metadata.labels"),
        forced=any(flag_text(labels, key) == "true" for key in (FORCE, IS_ROOT)),
        strict=_strict(manifest),
        is_root=flag_text(labels, IS_ROOT) == "true",
        in_default_tree=flag_text(labels, IN_DEFAULT_TREE) == "true",
        total=_total(manifest),
    )


def pod_labels(manifest: Manifest) -> tuple[Labels, str]:
    """The labels of a pod, or of the pods of a workload, and their field.

    Of several templates, those of the first that names a quota.
    """
    found = [
        (each.metadata.labels or {}, f"{each.metadata_field}.labels")
        for each in template_views(manifest)
    ]
    named = (each for each in found if any(key in each[0] for key in QUOTA))
    return next(named, found[0] if found else ({}, "metadata.labels"))


def quota_named(manifest: Manifest) -> str | None:
    """The bare name of the quota that a pod, or the pods of a workload, name by label."""
    labels, field = pod_labels(manifest)
    return _read_name(labels, QUOTA, manifest, field) or None


def quotas_named(manifest: Manifest) -> dict[str, str]:
    """The bare names of all quotas that pods of an object name by label, with the first field."""
    found: dict[str, str] = {}
    for view in template_views(manifest):
        labels, field = view.metadata.labels or {}, f"{view.metadata_field}.labels"
        key = next((each for each in QUOTA if each in labels), None)
        name = _read_name(labels, QUOTA, manifest, field) if key is not None else ""
        if name:
            found.setdefault(name, f"{field}[{key}]")
    return found


def quota_field(manifest: Manifest) -> str:
    """The field in which a pod names its quota."""
    labels, field = pod_labels(manifest)
    return f"{field}[{next(key for key in QUOTA if key in labels)}]"


def flag_text(labels: Labels, key: str) -> str:
    """The value of a label that should be true or false."""
    return to_text(labels.get(key))


def is_preemptible(labels: Labels) -> bool:
    """May a pod be preempted?"""
    return flag_text(labels, PREEMPTIBLE) != "false"


def weight_problem(manifest: Manifest) -> str | None:
    """Why the shared weight cannot be read; None if it can."""
    written = (manifest.metadata.annotations or {}).get(WEIGHT)
    try:
        _amounts(written, manifest)
    except ValueError as error:
        return str(error)
    return None


def weighed(manifest: Manifest) -> tuple[str, ...]:
    """The resources that the shared weight names, as far as it can be read."""
    written = (manifest.metadata.annotations or {}).get(WEIGHT)
    try:
        read = _parsed(written) if written not in (None, "") else None
    except ValueError:
        return ()
    return (
        tuple(_pair(str(key), value)[0] for key, value in read.items())
        if isinstance(read, dict)
        else ()
    )


def _read_name(labels: Labels, spellings: Sequence[str], manifest: Manifest, field: str) -> str:
    """The name under any of a key's spellings; under two, it must be the same."""
    found = {key: labels[key] for key in spellings if key in labels}
    if not found:
        return ""
    for key, value in found.items():
        if isinstance(value, dict | list):
            manifest.refuse(f"{field}[{key}]", "must be text")
    plain = {key: value for key, value in found.items() if not isinstance(value, dict | list)}
    names = {key: to_text(value) for key, value in plain.items()}
    if len(set(names.values())) > 1:
        (first, one), (second, other) = names.items()
        manifest.refuse(f"{field}[{second}]", f"is {other!r}, but {first} is {one!r}")
    return next(iter(names.values()), "")


def _weight(manifest: Manifest) -> Amounts:
    """The shared weight; empty if it cannot be read or all its amounts are 0."""
    written = (manifest.metadata.annotations or {}).get(WEIGHT)
    try:
        found = _amounts(written, manifest)
    except ValueError:
        return ()
    return tuple(sorted(found.items())) if any(found.values()) else ()


def total_problem(manifest: Manifest) -> str | None:
    """Why what a tree has to share cannot be read; None if it can, or is not stated."""
    try:
        _amounts((manifest.metadata.annotations or {}).get(TOTAL), manifest, TOTAL)
    except ValueError as error:
        return str(error)
    return None


def admission_limit(manifest: Manifest) -> Amounts | None:
    """What the pods of a quota may ask for together, or none if it is empty; None if not stated.

    One that cannot be read is as if it were empty; `rules` warns.
    """
    written = (manifest.metadata.annotations or {}).get(ADMISSION)
    if written is None:
        return None
    try:
        return tuple(sorted(_amounts(written, manifest, ADMISSION).items()))
    except ValueError:
        return ()


def admission_problem(manifest: Manifest) -> str | None:
    """Why the limit of admission cannot be read; None if it can, or is not stated."""
    try:
        _amounts((manifest.metadata.annotations or {}).get(ADMISSION), manifest, ADMISSION)
    except ValueError as error:
        return str(error)
    return None


def _total(manifest: Manifest) -> Amounts | None:
    written = (manifest.metadata.annotations or {}).get(TOTAL)
    try:
        found = _amounts(written, manifest, TOTAL)
    except ValueError:
        return None
    return None if written is None else tuple(sorted(found.items()))


def _amounts(written: object, manifest: Manifest, annotation: str = WEIGHT) -> dict[str, int]:
    """A map of quantities; raises ValueError if it is no map, InputError if one is negative."""
    if written is None or written == "":
        return {}
    read = _parsed(written)
    if not isinstance(read, dict):
        raise ValueError('is not a JSON map, such as {"cpu": 4}')
    quantities = dict(_pair(key, value) for key, value in read.items())
    negative = [name for name, value in quantities.items() if str(value).startswith("-")]
    for name in negative:
        where = f"metadata.annotations[{annotation}]"
        manifest.refuse(where, f"{name}: {quantities.pop(name)} is negative")
    try:
        return first_error(manifest, lambda: amounts.read(quantities, manifest, ""))
    except InputError as error:
        raise ValueError(f"{error.field.strip('[]')}: {error.problem}") from None


def _pair(key: str, value: object) -> tuple[str, object]:
    """A key and its value; YAML reads `{cpu:4}`, without a blank, as a key without a value."""
    if value is None and ":" in key:
        key, _, value = key.rpartition(":")
    return key, value


def _namespaces(manifest: Manifest) -> tuple[str, ...]:
    found = _names(manifest, NAMESPACES)
    for name in found:
        refuse_namespace(name, manifest, f"metadata.annotations[{NAMESPACES}]")
    return found


def _strict(manifest: Manifest) -> tuple[str, ...]:
    return _names(manifest, STRICT)


def _names(manifest: Manifest, key: str) -> tuple[str, ...]:
    """The names in an annotation that holds a JSON list."""
    written = (manifest.metadata.annotations or {}).get(key)
    if written is None or written == "":
        return ()
    try:
        read = _parsed(written)
    except ValueError:
        read = None
    if not isinstance(read, list) or not all(isinstance(each, str) for each in read):
        problem = 'is not a JSON list of names, such as ["team-a"]'
        manifest.refuse(f"metadata.annotations[{key}]", problem)
        return ()
    return tuple(read)


def _parsed(written: object) -> object:
    """The value of JSON in text; plain YAML that was not quoted is returned as it is."""
    if not isinstance(written, str):
        return written
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None
