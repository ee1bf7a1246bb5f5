"""ElasticQuotaProfiles: trees of quotas over pools of nodes, and the root quota of each.

A profile selects nodes and names a quota, which is kept for it: its min is what the nodes have, in
the resources of `resource-keys`, and its annotations say the same in full. The mirror works it out
from the nodes of the moment, so that no decision waits until it is written. A profile that cannot
be read in one point counts there as Koordinator counts it, and `profile_rules` warns.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from aliquot.dialects.core import amounts
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.label_selectors import canonical, requirements
from aliquot.dialects.core.labels import text_map, to_text
from aliquot.dialects.core.manifest import (
    KEP9_GROUPS,
    KOORDINATOR_PREFIX,
    MADE_BY_ALIQUOT,
    Key,
    Manifest,
    once,
    read,
)
from aliquot.dialects.core.nodes import HOSTNAME, is_ready
from aliquot.dialects.core.objects import NodeSpec, NodeStatus, NodeWire
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.dialects.koordinator.objects import ProfileSpec, ProfileWire
from aliquot.engine import NodePool, Requirement, selects
from aliquot.errors import InputError
from aliquot.json import Body

KIND = "ElasticQuotaProfile"
RESOURCE_KEYS = f"{KOORDINATOR_PREFIX}resource-keys"
_DEFAULT_KEYS = ("cpu", "memory")
_UNBOUNDED = str((2**63 - 1) // 2000)
"""The max of a root quota: Koordinator's largest amount that it can still add up in milli."""
_RATIO = re.compile(r"\+?[0-9]{0,18}\.?[0-9]{0,18}([eE][+-]?[0-9]{1,2})?")
_FNV_OFFSET, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3

Labels = Mapping[str, str]
Sums = dict[str, int]


@dataclass(frozen=True, slots=True)
class Profile:
    """What an ElasticQuotaProfile says."""

    tree: str
    quota: str
    """The bare name of the root quota, which is in the profile's namespace."""
    labels: tuple[tuple[str, str], ...]
    selector: tuple[Requirement, ...]
    ratio: tuple[int, int]
    keys: tuple[str, ...]
    """The resources of which the root quota is sure."""


@once
def profile(manifest: Manifest) -> Profile:
    """A profile; without a quota's name or a selector it is refused."""
    content = manifest.content
    assert isinstance(content, ProfileWire)
    spec = content.spec or ProfileSpec()
    if not spec.quota_name:
        manifest.refuse("spec.quotaName", "is missing")
    if spec.node_selector is None:
        manifest.refuse("spec.nodeSelector", "is missing")
        selector: list[Requirement] = []
    else:
        selector = requirements(spec.node_selector, manifest, "spec.nodeSelector")
    labels = text_map(spec.quota_labels, manifest, "spec.quotaLabels")
    return Profile(
        tree=tree_id(manifest),
        quota=spec.quota_name,
        labels=tuple(sorted(labels.items())),
        selector=canonical(selector),
        ratio=ratio(spec.resource_ratio) or (1, 1),
        keys=resource_keys(manifest) or _DEFAULT_KEYS,
    )


def tree_id(manifest: Manifest) -> str:
    """The id of a profile's tree: its label, else the FNV-1a hash of its namespace and name."""
    labels = manifest.metadata.labels or {}
    return to_text(labels.get(koordinator.TREE)) or fnv1a(f"{manifest.namespace}/{manifest.name}")


def fnv1a(text: str) -> str:
    """The 64-bit FNV-1a hash of a text, in decimal."""
    found = _FNV_OFFSET
    for byte in text.encode():
        found = (found ^ byte) * _FNV_PRIME % 2**64
    return str(found)


def ratio(written: str | None) -> tuple[int, int] | None:
    """A ratio as numerator and denominator; None if it is no number above 0 and at most 1."""
    if not written or not _RATIO.fullmatch(written) or not any(c.isdigit() for c in written):
        return None
    try:
        found = Fraction(written)
    except ValueError:
        return None
    return found.as_integer_ratio() if 0 < found <= 1 else None


def resource_keys(manifest: Manifest) -> tuple[str, ...] | None:
    """The resources of which the root quota is sure; None if they are not given, or unreadable."""
    written = (manifest.metadata.annotations or {}).get(RESOURCE_KEYS)
    try:
        found = json.loads(written) if isinstance(written, str) else written
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        return None
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _NodeView:
    """What of a node matters to pools."""

    labels: dict[str, str]
    has: Sums
    usable: bool
    """Is it neither cordoned nor not ready?"""


@once
def _view(manifest: Manifest) -> _NodeView:
    content = manifest.content
    assert isinstance(content, NodeWire)
    status, written = content.status or NodeStatus(), manifest.metadata.labels
    given = status.allocatable if status.allocatable is not None else status.capacity
    labels = text_map(written, manifest, "metadata.labels")
    usable = is_ready(manifest) and not (content.spec or NodeSpec()).unschedulable
    has = amounts.read(given, manifest, "status.allocatable")
    return _NodeView({HOSTNAME: manifest.name, **labels}, has, usable)


@dataclass(slots=True)
class PoolSums:
    """What the nodes of one profile have together, and of that what takes no new pods."""

    profile: Profile
    total: Sums = field(default_factory=dict)
    unschedulable: Sums = field(default_factory=dict)
    nodes: int = 0

    def scaled(self, sums: Sums) -> Sums:
        """Sums by the profile's ratio, in whole units."""
        pool = NodePool(ratio=self.profile.ratio)
        return {name: pool.part(amount) for name, amount in sums.items()}

    def selects(self, node: _NodeView) -> bool:
        """Does the profile select this node?"""
        return selects(self.profile.selector, node.labels)

    def count(self, node: _NodeView, sign: int) -> None:
        """Add what a node has (sign +1), or take it out (-1)."""
        self.nodes += sign
        for sums in (self.total,) if node.usable else (self.total, self.unschedulable):
            for name, amount in node.has.items():
                sums[name] = sums.get(name, 0) + sign * amount
                if sign < 0 and not sums[name]:
                    del sums[name]


class Pools:
    """The sums of every profile, kept in step with the nodes that change."""

    def __init__(self) -> None:
        self._sums: dict[Key, PoolSums] = {}
        self._nodes: dict[Key, _NodeView] = {}

    def __bool__(self) -> bool:
        return bool(self._sums)

    def of(self, manifest: Manifest) -> PoolSums:
        """The sums of a profile."""
        return self._sums[manifest.key]

    def rebuild(self, manifests: Iterable[Manifest]) -> None:
        """Add up anew, for these profiles and over these nodes."""
        manifests = list(manifests)
        self._sums, self._nodes = {}, {}
        for each in manifests:
            if each.kind == KIND:
                self._sums[each.key] = PoolSums(profile(each))
        for each in manifests if self._sums else ():
            if each.kind == "Node":
                self.put(each.key, each)

    def put(self, key: Key, node: Manifest | None) -> bool:
        """A node was created, changed or deleted; does any sum differ?"""
        before, after = self._nodes.pop(key, None), None if node is None else _view(node)
        if after is not None:
            self._nodes[key] = after
        if before == after:
            return False
        differs = False
        for sums in self._sums.values():
            for each, sign in ((before, -1), (after, +1)):
                if each is not None and sums.selects(each):
                    sums.count(each, sign)
                    differs = True
        return differs


def root_quota(manifest: Manifest, sums: PoolSums, existing: Manifest | None) -> Manifest:
    """The root quota of a profile as it should be, given the quota of its name, if there is one.

    Its bounds are the profile's; labels and annotations that others have written are kept.
    """
    wanted, total = profile(manifest), sums.scaled(sums.total)
    body: Body = dict(existing.body) if existing is not None else {}
    given: Body = dict(body.get("metadata") or {})
    made = MADE_BY_ALIQUOT if existing is None else {}
    labels = {
        **(given.get("labels") or {}),
        **made,
        koordinator.PROFILE: manifest.name,
        **dict(wanted.labels),
        koordinator.TREE: wanted.tree,
        koordinator.IS_ROOT: "true",
    }
    annotations = {
        **(given.get("annotations") or {}),
        koordinator.TOTAL: _json(total),
        koordinator.UNSCHEDULABLE: _json(sums.scaled(sums.unschedulable)),
    }
    low = amounts.write({name: total.get(name, 0) for name in wanted.keys})
    place = existing.place if existing is not None else manifest.place
    body = {
        "apiVersion": f"{KEP9_GROUPS[-1]}/v1alpha1",
        "kind": "ElasticQuota",
        **body,
        "metadata": {
            **given,
            "name": wanted.quota,
            "namespace": manifest.namespace,
            "labels": labels,
            "annotations": annotations,
        },
        "spec": {"min": low, "max": dict.fromkeys(wanted.keys, _UNBOUNDED)},
    }
    found = read(Document(place, body))
    assert found is not None
    return found


def root_quotas(
    manifests: Iterable[Manifest], pools: Pools, quotas: Iterable[Manifest]
) -> Iterator[Manifest]:
    """The root quotas of all profiles; of profiles that name one quota, that of the first."""
    known = {each.key: each for each in quotas if each.group in KEP9_GROUPS}
    seen: set[Key] = set()
    for each in sorted(manifests, key=lambda found: found.key):
        key = ("ElasticQuota", each.namespace, profile(each).quota)
        if key in seen:
            continue
        seen.add(key)
        try:
            yield root_quota(each, pools.of(each), known.get(key))
        except InputError:
            continue  # `quotaName` is no name: its own rule says so


def root_names(manifests: Iterable[Manifest]) -> Iterator[str]:
    """The bare names of the root quotas of the profiles among these objects."""
    for each in manifests:
        if isinstance(each.content, ProfileWire):
            yield (each.content.spec or ProfileSpec()).quota_name


def pools_by_tree(
    profiles: Iterable[Manifest], roots: Iterable[Manifest]
) -> dict[str, tuple[NodePool, ...]]:
    """The pools of every tree that has some: of profiles, else as its root quotas state them.

    Whether the default tree has the nodes as well is said by a label of the root quota.
    """
    found: dict[str, tuple[NodePool, ...]] = {}
    of_quota = {each.key: koordinator.keys(each) for each in roots}
    for each in sorted(profiles, key=lambda manifest: manifest.key):
        wanted = profile(each)
        root = of_quota.get(("ElasticQuota", each.namespace, wanted.quota))
        apart = root is None or not root.in_default_tree
        pool = NodePool(wanted.selector, ratio=wanted.ratio, apart=apart)
        found[wanted.tree] = (*found.get(wanted.tree, ()), pool)
    stated: dict[str, tuple[NodePool, ...]] = {}
    for _, root in sorted(of_quota.items()):
        if root.is_root and root.tree and root.tree not in found and root.total is not None:
            pool = NodePool(amounts=root.total, apart=not root.in_default_tree)
            stated[root.tree] = (*stated.get(root.tree, ()), pool)
    return found | stated


def _json(sums: Sums) -> str:
    return json.dumps(amounts.write(sums), separators=(",", ":"))
