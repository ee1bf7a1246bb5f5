"""Defaults that the webhook fills in, so that users read in an object what is in force.

Each default is one that the design's own webhook fills in and that the engine assumes anyway: an
object has the same meaning with and without it. A value that is set is never changed, and filling
in twice gives the same object. `docs/tasks/admission.md` has the table.
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
from aliquot.kube.webhook.tree_affinity import tree_affinity
from aliquot.mirror.group_membership import namespace_queue

Place = tuple[str, ...]
"""The path of a value in an object."""
Default = tuple[Place, Any]

_LABELS: Place = ("metadata", "labels")
_ANNOTATIONS: Place = ("metadata", "annotations")


def patch(cache: Cache, manifest: Manifest, is_new: bool) -> list[Body]:
    """The JSON Patch that fills in the defaults of an object."""
    fill = _FILLERS.get(manifest.kind)
    try:
        wanted = list(fill(cache, manifest, is_new)) if fill is not None else []
    except InputError:
        return []  # an invalid object is refused by /validate
    steps: list[Body] = []
    created: set[Place] = set()
    for place, value in wanted:
        steps += _steps(manifest.body, place, value, created)
    return steps


def _queue(cache: Cache, manifest: Manifest, is_new: bool) -> Iterator[Default]:
    spec = queues.spec(manifest)
    if spec.weight is None:
        yield ("spec", "weight"), 1
    if spec.reclaimable is None:
        yield ("spec", "reclaimable"), True


def _group(cache: Cache, manifest: Manifest, is_new: bool) -> Iterator[Default]:
    """A gang's queue is decided at its creation; `default` may come from the schema of its kind."""
    spec = gangs.spec(manifest)
    if spec.min_member is None:
        yield ("spec", "minMember"), 1
    if not is_new or manifest.group != VOLCANO_GROUP or spec.queue not in (None, "", "default"):
        return
    own, _ = volcano.queue_named(manifest.metadata, manifest)
    queue = own or namespace_queue(manifest.namespace, cache.objects) or queues.DEFAULT
    if queue != spec.queue:
        yield ("spec", "queue"), queue


def _quota(cache: Cache, manifest: Manifest, is_new: bool) -> Iterator[Default]:
    """Labels of a quota in a Koordinator tree; a quota outside of trees must not get any."""
    if not is_new or manifest.group not in KEP9_GROUPS or manifest.name in koordinator.SPECIAL:
        return
    if not has_koordinator_keys(manifest) and not cache.quota_index.has_trees:
        return
    labels, keys = manifest.metadata.labels or {}, koordinator.keys(manifest)
    if not any(each in labels for each in koordinator.PARENT):
        yield (*_LABELS, koordinator.PARENT[0]), koordinator.ROOT
    for flag, value in ((koordinator.IS_PARENT, "false"), (koordinator.LEND, "true")):
        if flag not in labels:
            yield (*_LABELS, flag), value
    tree = _tree_above(cache, keys.parent)
    if tree and koordinator.TREE not in labels:
        yield (*_LABELS, koordinator.TREE), tree
    bounds = spec(manifest).max
    if bounds and koordinator.WEIGHT not in (manifest.metadata.annotations or {}):
        yield (*_ANNOTATIONS, koordinator.WEIGHT), json.dumps(bounds, sort_keys=True)


def _tree_above(cache: Cache, parent: str) -> str:
    """The id of the tree that a parent is in; empty if it names none."""
    for manifest, _ in cache.quota_index.pairs:
        if manifest.name == parent and manifest.group in KEP9_GROUPS:
            return koordinator.keys(manifest).tree
    return ""


def _gpu_quota(cache: Cache, manifest: Manifest, is_new: bool) -> Iterator[Default]:
    total = gpu_quotas.total(manifest)
    if total.alert_threshold_percent is None:
        yield ("spec", "total", "alertThresholdPercent"), gpu_quotas.quota(manifest).threshold


def _pod(cache: Cache, manifest: Manifest, is_new: bool) -> Iterator[Default]:
    """What a pod that shares GPUs asks for by default; and the nodes of its quota's tree."""
    if is_new:
        yield from tree_affinity(cache, manifest)
    wanted = read_request(manifest.metadata, manifest)
    gpu_quota = list(cache.index.find((gpu_quotas.KIND, manifest.namespace)))
    if wanted is None or not gpu_quota or not is_new:
        return
    defaults = gpu_quotas.defaults(gpu_quota[-1])
    asked = gpu_ask(wanted, (), cache.cards.default, defaults)
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


def _steps(body: Body, place: Place, value: Any, created: set[Place]) -> Iterator[Body]:
    """The steps of a JSON Patch that add a value, after the maps on its path."""
    at: Any = body
    for depth, word in enumerate(place[:-1], start=1):
        at = at.get(word) if isinstance(at, dict) else None
        if at is None and place[:depth] not in created:
            created.add(place[:depth])
            yield {"op": "add", "path": _pointer(place[:depth]), "value": {}}
    yield {"op": "add", "path": _pointer(place), "value": value}


def _pointer(place: Place) -> str:
    return "".join(f"/{word.replace('~', '~0').replace('/', '~1')}" for word in place)
