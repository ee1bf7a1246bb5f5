"""What is filled in before an object is kept, so that what users read is what holds.

Each default is one that the design's own webhook fills in and that the engine assumes anyway: an
object means the same with it as without it. What is written is never touched, and filling in twice
is filling in once. `docs/tasks/admission.md` has the table.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from aliquot.dialects.core.manifest import KEP9_GROUPS, VOLCANO_GROUP, Manifest
from aliquot.dialects.kep9.quotas import has_koordinator_keys, spec
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.dialects.tensor_fusion import quotas as gpu_quotas
from aliquot.dialects.tensor_fusion.amounts import FIGURES
from aliquot.dialects.tensor_fusion.annotations import PREFIX, read_request
from aliquot.dialects.tensor_fusion.requests import gpu_ask
from aliquot.dialects.volcano import gangs, queues
from aliquot.dialects.volcano import keys as volcano
from aliquot.engine import quantity
from aliquot.errors import InputError
from aliquot.json import Body
from aliquot.kube.webhook.cache import Cache
from aliquot.mirror.group_membership import namespace_queue

Place = tuple[str, ...]
"""The keys that lead to a value."""
Default = tuple[Place, Any]

_LABELS: Place = ("metadata", "labels")
_ANNOTATIONS: Place = ("metadata", "annotations")


def patch(live: Cache, manifest: Manifest, is_new: bool) -> list[Body]:
    """The JSON Patch that fills in what is not said."""
    fill = _FILLERS.get(manifest.kind)
    try:
        wanted = list(fill(live, manifest, is_new)) if fill is not None else []
    except InputError:
        return []  # what makes no sense is refused by those who judge it
    steps: list[Body] = []
    made: set[Place] = set()
    for place, value in wanted:
        steps += _steps(manifest.body, place, value, made)
    return steps


def _queue(live: Cache, manifest: Manifest, is_new: bool) -> Iterator[Default]:
    said = queues.spec(manifest)
    if said.weight is None:
        yield ("spec", "weight"), 1
    if said.reclaimable is None:
        yield ("spec", "reclaimable"), True


def _group(live: Cache, manifest: Manifest, is_new: bool) -> Iterator[Default]:
    """The queue of a gang is decided when it comes. The schema of its kind may say `default`."""
    said = gangs.spec(manifest)
    if said.min_member is None:
        yield ("spec", "minMember"), 1
    if not is_new or manifest.group != VOLCANO_GROUP or said.queue not in (None, "", "default"):
        return
    own, _ = volcano.queue_named(manifest.metadata, manifest)
    queue = own or namespace_queue(manifest.namespace, live.objects) or queues.DEFAULT
    if queue != said.queue:
        yield ("spec", "queue"), queue


def _quota(live: Cache, manifest: Manifest, is_new: bool) -> Iterator[Default]:
    """Of a quota in a tree. Others carry no key of Koordinator's, and must not get one."""
    if not is_new or manifest.group not in KEP9_GROUPS or manifest.name in koordinator.SPECIAL:
        return
    if not has_koordinator_keys(manifest) and not live.quota_index.has_trees:
        return
    labels, keys = manifest.metadata.labels or {}, koordinator.keys(manifest)
    if not any(each in labels for each in koordinator.PARENT):
        yield (*_LABELS, koordinator.PARENT[0]), koordinator.ROOT
    for flag, value in ((koordinator.IS_PARENT, "false"), (koordinator.LEND, "true")):
        if flag not in labels:
            yield (*_LABELS, flag), value
    tree = _tree_above(live, keys.parent)
    if tree and koordinator.TREE not in labels:
        yield (*_LABELS, koordinator.TREE), tree
    bounds = spec(manifest).max
    if bounds and koordinator.WEIGHT not in (manifest.metadata.annotations or {}):
        yield (*_ANNOTATIONS, koordinator.WEIGHT), json.dumps(bounds, sort_keys=True)


def _tree_above(live: Cache, parent: str) -> str:
    """The id of the tree that a parent is in; empty if it says nothing."""
    for manifest, _ in live.quota_index.pairs:
        if manifest.name == parent and manifest.group in KEP9_GROUPS:
            return koordinator.keys(manifest).tree
    return ""


def _gpu_quota(live: Cache, manifest: Manifest, is_new: bool) -> Iterator[Default]:
    said = gpu_quotas.total(manifest)
    if said.alert_threshold_percent is None:
        yield ("spec", "total", "alertThresholdPercent"), gpu_quotas.quota(manifest).threshold


def _pod(live: Cache, manifest: Manifest, is_new: bool) -> Iterator[Default]:
    """What a pod that shares GPUs asks for of each, by the word of its namespace's quota."""
    wanted = read_request(manifest.metadata, manifest)
    told = list(live.index.find((gpu_quotas.KIND, manifest.namespace)))
    if wanted is None or not told or not is_new:
        return
    defaults = gpu_quotas.defaults(told[-1])
    asked = gpu_ask(wanted, (), live.cards.default, defaults)
    assert asked is not None
    for word, bound, amount in (
        ("request", defaults.requests, asked.request),
        ("limit", defaults.limits, asked.limit),
    ):
        for figure in FIGURES:
            key = f"{PREFIX}{figure}-{word}"
            known, value = getattr(bound, figure), getattr(amount, figure)
            if known is not None and value and key not in (manifest.metadata.annotations or {}):
                yield (*_ANNOTATIONS, key), quantity.text(figure, value)


_FILLERS: dict[str, Callable[[Cache, Manifest, bool], Iterator[Default]]] = {
    queues.KIND: _queue,
    gangs.KIND: _group,
    "ElasticQuota": _quota,
    gpu_quotas.KIND: _gpu_quota,
    "Pod": _pod,
}


def _steps(body: Body, place: Place, value: Any, made: set[Place]) -> Iterator[Body]:
    """The steps that put a value in its place, with the maps that lead there."""
    at: Any = body
    for depth, word in enumerate(place[:-1], start=1):
        at = at.get(word) if isinstance(at, dict) else None
        if at is None and place[:depth] not in made:
            made.add(place[:depth])
            yield {"op": "add", "path": _pointer(place[:depth]), "value": {}}
    yield {"op": "add", "path": _pointer(place), "value": value}


def _pointer(place: Place) -> str:
    return "".join(f"/{word.replace('~', '~0').replace('/', '~1')}" for word in place)
