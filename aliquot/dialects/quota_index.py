"""All quotas together: names written in one object, found in the others.

Koordinator's quotas are known by their bare name, cluster-wide, and refer to each other by it; the
engine knows `namespace/name`. Volcano's queues have no namespace and go by their bare name in the
engine, too. What a name means depends on which objects there are, so the whole is
read anew when they change, and the order in which they were written does not matter. It never
raises on what does not fit together: a parent that is not there, or a circle, is left out, and
`tree_rules` and `queue_rules` say so.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal

from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import KEP9_GROUPS, VOLCANO_GROUP, Manifest, once, read
from aliquot.dialects.kep9.quotas import KINDS, has_koordinator_keys, quota, quota_name
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.dialects.koordinator.keys import DEFAULT, NAMESPACE, ROOT, SYSTEM
from aliquot.dialects.volcano import queues
from aliquot.engine import Membership, Quota

Special = Literal["", "koordinator", "volcano"]
"""Whose quotas are there although nobody wrote them."""

_API_VERSION = "scheduling.sigs.k8s.io/v1alpha1"


@dataclass(frozen=True, slots=True)
class QuotaIndex:
    """Every quota, with its parent and its namespaces found."""

    pairs: tuple[tuple[Manifest, Quota], ...] = ()
    """Each as it was written, and as the engine sees it; but for the queues."""
    queues: tuple[tuple[Manifest, Quota], ...] = ()
    """The same of the queues."""
    names: Mapping[str, str] = field(default_factory=dict)
    """What the bare names of quotas stand for."""
    quotas: dict[str, Quota] = field(default_factory=dict)
    """By the engine's name for them, parents before their children."""
    homes: Membership = field(default_factory=Membership)
    has_trees: bool = False
    """Is it Koordinator that reads them? One key makes all of them its."""

    def named_by(self, manifest: Manifest, priority: int, queue: str | None = None) -> str | None:
        """The quota that a pod asks for: by its label, or as one that keeps the cluster going.

        Else it is the queue that was found for it, where there are queues at all.
        """
        return self.asked_for(
            koordinator.quota_named(manifest), manifest.namespace, priority, queue
        )

    def asked_for(
        self, named: str | None, namespace: str, priority: int, queue: str | None = None
    ) -> str | None:
        """The same, for a pod that names this quota, or none, and stands in this namespace."""
        if named is not None:
            return self.meaning(named)
        system = self.names.get(SYSTEM)
        if system is not None and koordinator.is_of_the_system(namespace, priority):
            return system
        return queue if self.queues else None

    def meaning(self, name: str) -> str:
        """What the engine calls the quota of this bare name; no quota's name, if there is none."""
        return self.names.get(name, f"{name}/")

    def ancestry(self, name: str) -> Iterator[Quota]:
        """The quota itself, then its parent, and so on to the top."""
        found: str | None = name
        while found is not None:
            yield self.quotas[found]
            found = self.quotas[found].parent


def build(manifests: Iterable[Manifest], special: Special = "") -> QuotaIndex:
    """The quotas among these objects.

    With those of Koordinator, there are a quota for what keeps the cluster going and one for the
    pods that belong nowhere else, whether or not anybody wrote them down. Without them, the first
    is no quota at all: no other policy lets pods be without bounds. With those of Volcano, there is
    a queue for the pods that belong nowhere else.
    """
    manifests = list(manifests)
    found = [each for each in manifests if each.kind in KINDS and not _is_named(each, ROOT)]
    if special == "koordinator":
        found += [each for each in built_in() if not any(_is_named(e, each.name) for e in found)]
    else:
        found = [each for each in found if not _is_named(each, SYSTEM)]
    names: dict[str, str] = {}
    for each in sorted(found, key=quota_name, reverse=True):
        if each.group in KEP9_GROUPS:
            names[each.name] = quota_name(each)
    parents = _parents(found, names)
    owners = _owners(found)
    pairs = tuple((each, _quota(each, parents, owners)) for each in found)
    lines = tuple(_queues(manifests, special == "volcano"))
    quotas = {each.name: each for _, each in (*pairs, *lines)}
    homes = Membership()
    for one in quotas.values():
        homes.add(one)
    has_trees = special == "koordinator" or any(has_koordinator_keys(each) for each in found)
    return QuotaIndex(pairs, lines, names, _from_the_top(quotas), homes, has_trees)


@cache
def built_in() -> tuple[Manifest, ...]:
    """The quotas that are there although nobody wrote them."""
    bodies = (
        {
            "apiVersion": _API_VERSION,
            "kind": "ElasticQuota",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {},
        }
        for name in (SYSTEM, DEFAULT)
    )
    manifests = (read(Document("built in", body)) for body in bodies)
    return tuple(each for each in manifests if each is not None)


@cache
def default_queue() -> Manifest:
    """The queue that every cluster of Volcano has."""
    body = {
        "apiVersion": f"{VOLCANO_GROUP}/v1beta1",
        "kind": queues.KIND,
        "metadata": {"name": queues.DEFAULT},
        "spec": {"weight": 1},
    }
    manifest = read(Document("built in", body))
    assert manifest is not None
    return manifest


def _queues(manifests: Iterable[Manifest], special: bool) -> Iterator[tuple[Manifest, Quota]]:
    """The queues, with their parents found. The root is the cluster, which needs no quota.

    A cluster of Volcano has a default queue, which says nothing as a rule. Where others share the
    cluster out, that is no quota for all those pods that have none, unless somebody bounded it.
    """
    found = [each for each in manifests if each.kind == queues.KIND and each.name != queues.ROOT]
    if special and all(each.name != queues.DEFAULT for each in found):
        found.append(default_queue())
    alone = [(each, queues.queue(each)) for each in found]
    if not special:
        counts = {queues.parent(each) for each in found}
        alone = [(m, q) for m, q in alone if not q.fallback or q.min or q.max or q.name in counts]
    names = {each.name for each, _ in alone}
    written = ((each.name, queues.parent(each)) for each, _ in alone)
    parents = without_circles({name: up for name, up in written if up in names and up is not None})
    above = set(parents.values())
    for manifest, one in alone:
        up = parents.get(one.name)
        yield manifest, replace(one, parent=up, is_parent=one.name in above)


def _is_named(manifest: Manifest, name: str) -> bool:
    return manifest.name == name and manifest.group in KEP9_GROUPS


def _quota(
    manifest: Manifest, parents: Mapping[str, str], owners: Mapping[str, str | None]
) -> Quota:
    alone = quota(manifest)
    if manifest.group not in KEP9_GROUPS:
        return alone
    if manifest.name == SYSTEM:
        return Quota(alone.name, unshared=True)
    place = (parents.get(alone.name), owners.get(manifest.namespace) == alone.name)
    known = _places(manifest)
    if place not in known:
        parent, owns = place
        known[place] = replace(
            alone,
            parent=parent,
            namespaces=alone.namespaces | ({manifest.namespace} if owns else set()),
            fallback=manifest.name == DEFAULT,
        )
    return known[place]


@once
def _places(manifest: Manifest) -> dict[tuple[str | None, bool], Quota]:
    """A quota by its parent, and whether its namespace is its own: few ever have another place."""
    return {}


def _parents(found: Iterable[Manifest], names: Mapping[str, str]) -> dict[str, str]:
    """The parent of each quota whose parent is there, and not below itself."""
    written = (
        (quota_name(each), names.get(koordinator.keys(each).parent))
        for each in found
        if each.group in KEP9_GROUPS
    )
    return without_circles({name: parent for name, parent in written if parent is not None})


def without_circles(parents: Mapping[str, str]) -> dict[str, str]:
    """The same, but for those who are their own ancestors."""
    round_and_round = {name for name in parents if name in _above(name, parents)}
    return {name: parent for name, parent in parents.items() if name not in round_and_round}


def circle(name: str, parents: Mapping[str, str | None]) -> str | None:
    """In words, the way up from a quota that leads back to it; None if there is an end."""
    trail = {name: None}
    at = parents.get(name)
    while at is not None and at not in trail:
        trail[at] = None
        at = parents.get(at)
    if at != name:
        return None
    words = " is below ".join([*trail, at])
    return "is its own parent" if len(trail) == 1 else f"a circle: {words}"


def _above(name: str, parents: Mapping[str, str]) -> set[str]:
    """All that comes above a quota; in a circle, the quota itself too."""
    seen: set[str] = set()
    at = parents.get(name)
    while at is not None and at not in seen:
        seen.add(at)
        at = parents.get(at)
    return seen


def _owners(found: Iterable[Manifest]) -> dict[str, str | None]:
    """The quota of each namespace: the one named like it, else the only one there to hold pods.

    The first is how Koordinator does it, the second how everybody else does. A namespace that some
    quota lists as its own needs no such guess, and where several quotas are, none is meant.
    """
    singles = [
        (each, koordinator.keys(each))
        for each in found
        if each.group in KEP9_GROUPS and each.name not in koordinator.SPECIAL
    ]
    listed = {name for _, keys in singles for name in keys.namespaces}
    holders = [each for each, keys in singles if not keys.is_parent]
    count = Counter(each.namespace for each in holders)
    owners: dict[str, str | None] = {
        each.namespace: quota_name(each)
        for each in holders
        if count[each.namespace] == 1 and each.namespace not in listed
    }
    owners.update(
        (each.namespace, quota_name(each)) for each, _ in singles if each.name == each.namespace
    )
    return owners


def _from_the_top(quotas: Mapping[str, Quota]) -> dict[str, Quota]:
    depths: dict[str, int] = {}

    def depth(name: str) -> int:
        trail = []
        at: str | None = name
        while at is not None and at not in depths:
            trail.append(at)
            at = quotas[at].parent
        base = depths[at] if at is not None else -1
        depths.update(zip(reversed(trail), range(base + 1, base + 1 + len(trail)), strict=True))
        return depths[name]

    return {name: quotas[name] for name in sorted(quotas, key=depth)}
