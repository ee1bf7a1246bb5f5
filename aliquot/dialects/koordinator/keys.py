"""Koordinator's keys: what labels and annotations say about a quota, and about a pod.

Two spellings are read for what the design calls one thing and its implementation another. Values
are text, and maps and lists JSON in text; YAML that was not quoted is read as it was meant, as in
the design's own examples, and `rules` warns that an API server would refuse it. Nothing here knows
of any other object: names are as written, and `quota_index` finds what they mean.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aliquot.dialects.core import amounts
from aliquot.dialects.core.labels import to_text
from aliquot.dialects.core.manifest import KOORDINATOR_PREFIX as PREFIX
from aliquot.dialects.core.manifest import Manifest, check_namespace, once
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
ADMISSION = f"{PREFIX}admission"
FLAGS = (IS_PARENT, IS_ROOT, LEND, FORCE)

_CRITICAL = 2_000_000_000

Labels = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Keys:
    """What an object says about its place in a tree."""

    parent: str = ""
    """The parent's name, without a namespace; empty on the first level."""
    is_parent: bool = False
    lend: bool = True
    weight: Amounts = ()
    """Empty where it goes by max."""
    namespaces: tuple[str, ...] = ()
    tree: str = ""
    """The id of its tree; empty where it says nothing."""
    forced: bool = False
    """May it break the rule of sums?"""
    strict: tuple[str, ...] = ()
    """Resources whose max must not be below what is used."""


def has_keys(metadata_maps: Sequence[Labels | None]) -> bool:
    """Is anything in these maps written for Koordinator?"""
    return any(key.startswith(PREFIX) for each in metadata_maps for key in each or ())


@once
def keys(manifest: Manifest) -> Keys:
    """What a quota object says; an error names the key that makes no sense."""
    labels = manifest.metadata.labels or {}
    parent = _word(labels, PARENT, manifest, "metadata.labels")
    return Keys(
        parent="" if parent == ROOT else parent,
        is_parent=flag_text(labels, IS_PARENT) == "true",
        lend=flag_text(labels, LEND) != "false",
        weight=_weight(manifest),
        namespaces=_namespaces(manifest),
        tree=_word(labels, (TREE,), manifest, "metadata.labels"),
        forced=any(flag_text(labels, key) == "true" for key in (FORCE, IS_ROOT)),
        strict=_strict(manifest),
    )


def pod_labels(manifest: Manifest) -> tuple[Labels, str]:
    """The labels of a pod, or of the pods of a workload, and where they stand.

    Of several kinds of pods, those of the first that names a quota.
    """
    found = [
        (each.metadata.labels or {}, f"{each.metadata_field}.labels")
        for each in template_views(manifest)
    ]
    named = (each for each in found if any(key in each[0] for key in QUOTA))
    return next(named, found[0] if found else ({}, "metadata.labels"))


def quota_named(manifest: Manifest) -> str | None:
    """The quota that a pod, or the pods of a workload, ask for by name."""
    labels, field = pod_labels(manifest)
    return _word(labels, QUOTA, manifest, field) or None


def quota_field(manifest: Manifest) -> str:
    """Where a pod names its quota."""
    labels, field = pod_labels(manifest)
    return f"{field}[{next(key for key in QUOTA if key in labels)}]"


def flag_text(labels: Labels, key: str) -> str:
    """What a label says that should say true or false."""
    return to_text(labels.get(key))


def is_preemptible(labels: Labels) -> bool:
    """May a pod be asked to go?"""
    return flag_text(labels, PREEMPTIBLE) != "false"


def is_of_the_system(namespace: str, priority: int) -> bool:
    """Does a pod that names no quota keep the cluster itself going?"""
    return namespace == "kube-system" or priority >= _CRITICAL


def weight_problem(manifest: Manifest) -> str | None:
    """Why the shared weight cannot be read, if it cannot."""
    written = (manifest.metadata.annotations or {}).get(WEIGHT)
    try:
        _amounts(written, manifest)
    except ValueError as error:
        return str(error)
    return None


def _word(labels: Labels, spellings: Sequence[str], manifest: Manifest, field: str) -> str:
    """One name, under whichever key it stands; under two, it must be the same."""
    found = {key: labels[key] for key in spellings if key in labels}
    for key, value in found.items():
        if isinstance(value, dict | list):
            raise manifest.error(f"{field}[{key}]", "must be text")
    words = {key: to_text(value) for key, value in found.items()}
    if len(set(words.values())) > 1:
        (first, one), (second, other) = words.items()
        raise manifest.error(f"{field}[{second}]", f"is {other!r}, but {first} is {one!r}")
    return next(iter(words.values()), "")


def _weight(manifest: Manifest) -> Amounts:
    """The shared weight; one that cannot be read, or gives nothing any weight, is none."""
    written = (manifest.metadata.annotations or {}).get(WEIGHT)
    try:
        found = _amounts(written, manifest)
    except ValueError:
        return ()
    return tuple(sorted(found.items())) if any(found.values()) else ()


def _amounts(written: object, manifest: Manifest) -> dict[str, int]:
    """A map of quantities; a ValueError if it is none, an InputError if one is negative."""
    if written is None or written == "":
        return {}
    read = _parsed(written)
    if not isinstance(read, dict):
        raise ValueError('is not a JSON map, such as {"cpu": 4}')
    quantities = dict(_pair(key, value) for key, value in read.items())
    for name, value in quantities.items():
        if str(value).startswith("-"):
            where = f"metadata.annotations[{WEIGHT}]"
            raise manifest.error(where, f"{name}: {value} is negative")
    try:
        return amounts.read(quantities, manifest, "")
    except InputError as error:
        raise ValueError(f"{error.field.strip('[]')}: {error.problem}") from None


def _pair(key: str, value: object) -> tuple[str, object]:
    """`{cpu:4}` without a blank is a key without a value to YAML, but not to its author."""
    if value is None and ":" in key:
        key, _, value = key.rpartition(":")
    return key, value


def _namespaces(manifest: Manifest) -> tuple[str, ...]:
    found = _names(manifest, NAMESPACES)
    for name in found:
        place = f"{manifest.place}: {manifest.title}"
        check_namespace(name, place, f"metadata.annotations[{NAMESPACES}]")
    return found


def _strict(manifest: Manifest) -> tuple[str, ...]:
    return _names(manifest, STRICT)


def _names(manifest: Manifest, key: str) -> tuple[str, ...]:
    """A list of words."""
    written = (manifest.metadata.annotations or {}).get(key)
    if written is None or written == "":
        return ()
    try:
        read = _parsed(written)
    except ValueError:
        read = None
    if not isinstance(read, list) or not all(isinstance(each, str) for each in read):
        problem = 'is not a JSON list of names, such as ["team-a"]'
        raise manifest.error(f"metadata.annotations[{key}]", problem)
    return tuple(read)


def _parsed(written: object) -> object:
    """JSON in text; or plain YAML, where somebody forgot the quotes."""
    if not isinstance(written, str):
        return written
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None
