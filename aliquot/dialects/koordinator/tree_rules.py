"""Rules for trees with ids: quotas that are in one, and profiles that give them their nodes.

Koordinator's webhook refuses a quota in another tree than its parent, and one that leaves its tree.
What it accepts is at most a warning here: an id that no profile has, profiles that select the same
nodes or none, values that cannot be read and count as if they were not written.
"""

from collections.abc import Iterable, Iterator, Mapping

from aliquot.dialects.core.findings import Finding, list_names
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.kep9.quotas import quota_name
from aliquot.dialects.kep9.rules import pointer
from aliquot.dialects.koordinator import profiles
from aliquot.dialects.koordinator.keys import PROFILE, SPECIAL, TREE, Keys
from aliquot.dialects.koordinator.objects import ProfileSpec, ProfileWire
from aliquot.dialects.quota_index import QuotaIndex
from aliquot.engine import Node, NodePool, Quota

Member = tuple[Manifest, Quota, Keys]
"""A quota's object, the engine's quota, and its Koordinator keys."""

_TREE_FIELD = f"metadata.labels[{TREE}]"


def check_trees(members: Iterable[Member], quota_index: QuotaIndex) -> Iterator[Finding]:
    """Errors and warnings about the tree ids of all quotas."""
    members = list(members)
    yield from in_the_tree_of_its_parent(members, quota_index)
    yield from in_a_tree_with_nodes(members, quota_index)


def in_the_tree_of_its_parent(
    members: Iterable[Member], quota_index: QuotaIndex
) -> Iterator[Finding]:
    """A quota has the tree id of its parent; one that is not written is that of its parent."""
    own = {bounds.name: (manifest, keys.tree) for manifest, bounds, keys in members}
    for manifest, bounds, keys in members:
        if manifest.name in SPECIAL:
            continue
        ids = [own[above.name] for above in quota_index.ancestry(bounds.name) if above.name in own]
        above = next(((other, tree) for other, tree in ids[1:] if tree), None)
        above = above or next(iter(ids[1:]), None)
        if above is None or not keys.tree or keys.tree == above[1]:
            continue
        there = f"{above[1]!r} in" if above[1] else "there is none in"
        problem = f"is {keys.tree!r}, but {there} {pointer(above[0])}, above it"
        yield manifest.finding("error", _TREE_FIELD, problem)


def in_a_tree_with_nodes(members: Iterable[Member], quota_index: QuotaIndex) -> Iterator[Finding]:
    """Warn of a quota on the first level of a tree that has nothing to share."""
    if quota_index.by_label is None:
        return  # another policy holds, under which all quotas share all nodes
    for manifest, bounds, keys in members:
        alone = bounds.parent is None and manifest.name not in SPECIAL
        if alone and keys.tree and keys.tree not in quota_index.trees:
            known = sorted(quota_index.trees)
            some = f"; there are {list_names(known)}" if known else ""
            problem = (
                f"no ElasticQuotaProfile has the tree {keys.tree!r}, so it has no nodes and its "
                f"pods wait{some}"
            )
            yield manifest.finding("warning", _TREE_FIELD, problem)


def no_move_between_trees(before: Iterable[Member], after: Iterable[Member]) -> Iterator[Finding]:
    """A quota cannot change its tree id: trees have different nodes.

    Unless a profile makes it the root of its tree.
    """
    old = {quota_name(manifest): keys.tree for manifest, _, keys in before}
    for manifest, bounds, keys in after:
        tree = old.get(bounds.name, keys.tree)
        if tree != keys.tree and not (keys.is_root and PROFILE in (manifest.metadata.labels or {})):
            problem = f"was {tree!r} and cannot become {keys.tree!r}"
            yield manifest.finding("error", _TREE_FIELD, problem)


def check_profile(manifest: Manifest) -> Iterator[Finding]:
    """Warnings about what of a profile cannot be read, and counts as if it were not written."""
    content = manifest.content
    assert isinstance(content, ProfileWire)
    written = (content.spec or ProfileSpec()).resource_ratio
    if written is not None and profiles.ratio(written) is None:
        problem = f"{written!r} is no number above 0 and at most 1; all that the nodes have counts"
        yield manifest.finding("warning", "spec.resourceRatio", problem)
    annotations = manifest.metadata.annotations or {}
    if profiles.RESOURCE_KEYS in annotations and profiles.resource_keys(manifest) is None:
        where = f"metadata.annotations[{profiles.RESOURCE_KEYS}]"
        problem = 'is not a JSON list of names, such as ["cpu"]; cpu and memory count instead'
        yield manifest.finding("warning", where, problem)


def check_profiles(manifests: Iterable[Manifest]) -> Iterator[Finding]:
    """Warnings about profiles that keep one quota: only the first of them does."""
    first: dict[tuple[str, str], Manifest] = {}
    for each in sorted(manifests, key=lambda manifest: manifest.key):
        name = profiles.profile(each).quota
        other = first.setdefault((each.namespace, name), each)
        if other is not each:
            problem = f"{name} is kept already by {pointer(other)}; this profile only adds nodes"
            yield each.finding("warning", "spec.quotaName", problem)


def check_pools(manifests: Iterable[Manifest], nodes: Iterable[Node]) -> Iterator[Finding]:
    """Warnings about profiles that select no node, or nodes of another tree."""
    nodes = list(nodes)
    found = [(each, _selected(each, nodes)) for each in sorted(manifests, key=lambda m: m.key)]
    for number, (manifest, selected) in enumerate(found):
        if not selected:
            problem = "selects no node, so its tree has nothing to share"
            yield manifest.finding("warning", "spec.nodeSelector", problem)
        for other, others in found[:number]:
            both = [name for name in selected if name in others]
            if both and profiles.tree_id(other) != profiles.tree_id(manifest):
                problem = (
                    f"selects {list_names(both)}, as {pointer(other)} does: both trees share what "
                    "is there but once"
                )
                yield manifest.finding("warning", "spec.nodeSelector", problem)


def _selected(manifest: Manifest, nodes: Iterable[Node]) -> Mapping[str, None]:
    pool = NodePool(profiles.profile(manifest).selector)
    return dict.fromkeys(each.name for each in nodes if pool.selects(each))
