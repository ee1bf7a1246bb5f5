"""The node affinity of pods whose quota is in a tree with nodes of its own.

The scheduler keeps such pods on their nodes whether or not they say so. Written into the pod, it is
there for all to read, and holds for other schedulers as well. To each term of the pod's own
required affinity, of which one must hold, what selects the nodes of the tree is added.
"""

from collections.abc import Iterator
from typing import Any

from aliquot.dialects.core.manifest import Manifest
from aliquot.engine import Requirement
from aliquot.json import Body
from aliquot.kube.webhook.cache import Cache
from aliquot.kube.webhook.usage import owner_of, quota_of

_PLACE = (
    *("spec", "affinity", "nodeAffinity"),
    *("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"),
)


def tree_affinity(cache: Cache, manifest: Manifest) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The terms of the pod's required node affinity, where they are to be other ones."""
    index = cache.quota_index
    quota = quota_of(owner_of(manifest), index, cache.objects) if index.trees else None
    if quota is None:
        return
    *_, top = index.ancestry(quota)
    tree = index.trees.get(top.tree)
    selectors = () if tree is None else tree.within
    if not selectors:
        return
    terms = _at(manifest.body) or [{}]
    alone = not _at(manifest.body)
    wanted = [
        _narrowed(term, selector) if alone or term else term
        for term in terms
        for selector in (selectors if alone or term else selectors[:1])
    ]
    if alone or not _is_narrowed(terms, selectors):
        yield _PLACE, wanted


def _at(body: Body) -> list[Body]:
    """The terms that the pod states itself."""
    found: Any = body
    for word in _PLACE:
        found = found.get(word) if isinstance(found, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _narrowed(term: Body, selector: tuple[Requirement, ...]) -> Body:
    """A term with these requirements, each once."""
    written = term.get("matchExpressions") or []
    more = [each for each in map(_expression, selector) if each not in written]
    return {**term, "matchExpressions": [*written, *more]}


def _is_narrowed(terms: list[Body], selectors: tuple[tuple[Requirement, ...], ...]) -> bool:
    """Does each term state the requirements of a pool already?"""
    return all(
        not term or any(_narrowed(term, each) == term for each in selectors) for term in terms
    )


def _expression(requirement: Requirement) -> Body:
    values = {"values": list(requirement.values)} if requirement.values else {}
    return {"key": requirement.key, "operator": requirement.operator, **values}
