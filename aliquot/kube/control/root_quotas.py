"""What differs between the root quotas of profiles and what is written of them.

The mirror works out a root quota from the nodes of the moment; here it is compared with the object.
Only what a profile decides is written: bounds, its labels, what the tree has. One that does not
exist is created like every other quota that the index has and the cluster lacks.
"""

import json
from collections.abc import Iterator

from aliquot.dialects.core.manifest import KOORDINATOR_QUOTAS, Manifest
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.dialects.koordinator.profiles import KIND, tree_id
from aliquot.engine import quantity
from aliquot.errors import QuantityError
from aliquot.json import Body
from aliquot.kube.execution.events import InvolvedObject
from aliquot.mirror.mirror import Mirror

_ANNOTATIONS = (koordinator.TOTAL, koordinator.UNSCHEDULABLE)


def patches(mirror: Mirror) -> Iterator[tuple[Manifest, Body]]:
    """The objects that are to be patched, profiles and root quotas, each with its patch."""
    for manifest in mirror.store.objects.values() if mirror.pools else ():
        if manifest.kind == KIND and koordinator.TREE not in (manifest.metadata.labels or {}):
            label = {koordinator.TREE: tree_id(manifest)}
            yield manifest, {"metadata": {"labels": label}}
    for wanted, _ in mirror.quota_index.pairs if mirror.pools else ():
        written = mirror.store.objects.get(wanted.key)
        if written is None or written is wanted or profile_of(wanted) is None:
            continue
        patch = _patch(written.body, wanted.body)
        if patch:
            yield written, patch


def profile_of(quota: Manifest) -> InvolvedObject | None:
    """The profile that a quota is kept for, if it is the root of a tree."""
    labels = quota.metadata.labels or {}
    name = labels.get(koordinator.PROFILE)
    if not isinstance(name, str) or labels.get(koordinator.IS_ROOT) != "true":
        return None
    return InvolvedObject(f"{KOORDINATOR_QUOTAS}/v1alpha1", KIND, quota.namespace, name)


def _patch(written: Body, wanted: Body) -> Body:
    """The merge patch of what a profile decides about its root quota."""
    patch: Body = {}
    metadata: Body = {}
    for part in ("labels", "annotations"):
        has, should = written["metadata"].get(part) or {}, wanted["metadata"].get(part) or {}
        names = should if part == "labels" else _ANNOTATIONS
        differs = {
            name: should[name]
            for name in names
            if has.get(name) != should[name]
            and not (name in _ANNOTATIONS and _equal(_read(has.get(name)), _read(should[name])))
        }
        if differs:
            metadata[part] = differs
    if metadata:
        patch["metadata"] = metadata
    spec: Body = {}
    for bound in ("min", "max"):
        has, should = (written.get("spec") or {}).get(bound) or {}, wanted["spec"][bound]
        if not _equal(has, should):
            spec[bound] = {**dict.fromkeys(name for name in has if name not in should), **should}
    if spec:
        patch["spec"] = spec
    return patch


def _equal(one: object, other: object) -> bool:
    """Are two maps of quantities the same amounts, however they are written?"""
    if not isinstance(one, dict) or not isinstance(other, dict) or one.keys() != other.keys():
        return False
    try:
        return all(
            quantity.amount(name, str(one[name])) == quantity.amount(name, str(other[name]))
            for name in one
        )
    except QuantityError:
        return False


def _read(written: object) -> object:
    try:
        return json.loads(written) if isinstance(written, str) else None
    except (ValueError, RecursionError):
        return None
