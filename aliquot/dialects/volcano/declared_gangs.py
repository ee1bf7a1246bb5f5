"""Gangs that pods declare themselves, without a PodGroup: those of Koordinator and TensorFusion.

Koordinator's annotations name the gang, its minimum, its mode, and the gangs that it starts with;
they are read from PodGroups too. TensorFusion's enable a gang for the pods of a workload; its
webhook stamps size and key on the pods, and workloads that are expanded here are stamped alike.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aliquot.dialects.core.labels import to_text
from aliquot.dialects.core.manifest import TENSOR_FUSION, Manifest
from aliquot.dialects.core.objects import Metadata
from aliquot.json import Body

_PREFIX = "gang.scheduling.koordinator.sh/"
NAME = f"{_PREFIX}name"
MIN_AVAILABLE, _TOTAL = f"{_PREFIX}min-available", f"{_PREFIX}total-number"
_MODE, _GROUPS, WAITING_TIME = f"{_PREFIX}mode", f"{_PREFIX}groups", f"{_PREFIX}waiting-time"
_MODES = ("Strict", "NonStrict")
LIGHT_NAME = "pod-group.scheduling.sigs.k8s.io/name"
_LIGHT_MIN = "pod-group.scheduling.sigs.k8s.io/min-available"

_GANG = f"{TENSOR_FUSION}/gang-"
ENABLED = f"{_GANG}enabled"
_MIN_MEMBERS, _KEY = f"{_GANG}min-members", f"{_GANG}group-key"
_DESIRED, _REQUIRED = f"{_GANG}desired-members", f"{_GANG}required-members"
TIMEOUT = f"{_GANG}timeout"
READ = frozenset({ENABLED, _MIN_MEMBERS, _KEY, _DESIRED, _REQUIRED, TIMEOUT})
"""TensorFusion's annotations that are understood here."""
NO_EFFECT = (WAITING_TIME, f"{_PREFIX}match-policy", TIMEOUT)
"""Annotations about how long a part of a gang keeps room while the rest has none."""
_WORKLOAD = f"{TENSOR_FUSION}/workload"
_FEWEST = 2
"""TensorFusion has no gang of one."""
_MOST_DIGITS = 9
"""More digits than these could exceed the int32 of the API's field."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a pod says of its gang, or a PodGroup in its annotations."""

    min_member: int = 1
    together: tuple[str, ...] = ()
    keeps_room: bool = False


def of_koordinator(metadata: Metadata, manifest: Manifest, field: str) -> Declaration | None:
    """The gang that a pod declares by Koordinator's keys; None if it says no minimum."""
    annotations, labels = metadata.annotations or {}, metadata.labels or {}
    light, at = to_text(labels.get(_LIGHT_MIN)), f"{field}.labels[{_LIGHT_MIN}]"
    written = light or to_text(annotations.get(MIN_AVAILABLE))
    if not written:
        return None
    low = _number(written, manifest, at if light else f"{field}.annotations[{MIN_AVAILABLE}]")
    return Declaration(max(low, 1), *how(annotations, manifest, field))


def how(
    annotations: Mapping[str, Any], manifest: Manifest, field: str = "metadata"
) -> tuple[tuple[str, ...], bool]:
    """The gangs that one starts with, and whether it keeps the room that it finds."""
    mode = to_text(annotations.get(_MODE)) or _MODES[0]
    if mode not in _MODES:
        manifest.refuse(f"{field}.annotations[{_MODE}]", f"{mode!r} is none of {', '.join(_MODES)}")
    if to_text(annotations.get(_TOTAL)):
        _number(to_text(annotations[_TOTAL]), manifest, f"{field}.annotations[{_TOTAL}]")
    return _groups(to_text(annotations.get(_GROUPS)), manifest, field), mode == _MODES[1]


def of_tensor_fusion(
    metadata: Metadata, manifest: Manifest, field: str
) -> tuple[str, Declaration] | None:
    """The name and size of the gang that TensorFusion's annotations of a pod enable.

    A workload's template need not state them: its pods are stamped with both.
    """
    annotations = metadata.annotations or {}
    if to_text(annotations.get(ENABLED)) != "true":
        return None
    sizes = {
        key: _number(to_text(annotations[key]), manifest, f"{field}.annotations[{key}]")
        for key in (_REQUIRED, _MIN_MEMBERS, _DESIRED)
        if to_text(annotations.get(key))
    }
    size = next((each for each in sizes.values() if each >= _FEWEST), None)
    key = to_text(annotations.get(_KEY))  # TensorFusion's webhook writes namespace/name
    name = (key.partition("/")[2] or key).replace("/", "-")
    name = name or to_text((metadata.labels or {}).get(_WORKLOAD)) or _owner(metadata)
    if size is None or not name:
        if manifest.kind == "Pod" and to_text(annotations.get(_DESIRED)) != "1":
            lacks = "size" if size is None else "workload"
            problem = f"the {lacks} of the gang is unknown: write {_MIN_MEMBERS} and {_KEY}"
            manifest.refuse(f"{field}.annotations[{ENABLED}]", problem)
        return None
    return name, Declaration(size)


def stamped(owner: Body, pod: Body) -> Body:
    """A pod of a workload as TensorFusion's webhook stamps it, if its template enables a gang."""
    written = pod["metadata"].get("annotations") or {}
    if to_text(written.get(ENABLED)) != "true" or to_text(written.get(_REQUIRED)):
        return pod
    spec = owner.get("spec") or {}
    sizes = (spec.get(word) for word in ("replicas", "parallelism", "completions"))
    desired = next((each for each in sizes if type(each) is int), 1)
    low = to_text(written.get(_MIN_MEMBERS))
    required = int(low) if low.isascii() and low.isdigit() and int(low) >= _FEWEST else desired
    metadata = owner["metadata"]
    key = f"{metadata.get('namespace') or 'default'}/{metadata['name']}"
    stamps = {_DESIRED: str(desired), _REQUIRED: str(required), _KEY: key}
    return {**pod, "metadata": {**pod["metadata"], "annotations": {**written, **stamps}}}


def _owner(metadata: Metadata) -> str:
    return next((each.name for each in metadata.owner_references or () if each.controller), "")


def _groups(written: str, manifest: Manifest, field: str) -> tuple[str, ...]:
    """The gangs, each `namespace/name`, of a JSON list."""
    if not written:
        return ()
    try:
        found = json.loads(written)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(type(x) is str and "/" in x for x in found):
        problem = f"{written!r} is no JSON list of gangs, such as " + '["team-a/ps", "team-a/gpu"]'
        manifest.refuse(f"{field}.annotations[{_GROUPS}]", problem)
        return ()
    return tuple(sorted(set(found)))


def _number(written: str, manifest: Manifest, field: str) -> int:
    if not (written.isascii() and written.isdigit() and len(written) <= _MOST_DIGITS):
        manifest.refuse(field, f"{written!r} is no whole number of pods")
        return 1
    return int(written)
