"""All quotas together: each with its parent and its namespaces resolved.

Koordinator's quotas refer to each other, and pods to them, by a bare name that is unique in the
cluster; the engine knows a quota as `namespace/name`. Volcano's queues have no namespace, and the
engine knows them by their bare name. What a name stands for depends on all objects, so the index is
built anew when a quota changes, and the order of the objects does not matter. It never raises on
quotas that do not fit together: a parent that does not exist, or a cycle, is left out, a quota that
is too deep is placed less deep, and `koordinator.rules` and `volcano.queue_rules` report it.

A pod's label names a quota only where trees are shared (`hierarchy`). It is open to the pods of its
own namespace and of those that it lists, so that no tenant spends another's quota; one that an
administrator keeps in a namespace of the system, and that lists none, is open to all.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Literal

from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.gpu_models import GpuModels
from aliquot.dialects.core.manifest import (
    KEP9_GROUPS,
    MADE_BY_ALIQUOT,
    VOLCANO_GROUP,
    Manifest,
    made_by_aliquot,
    once,
    read,
)
from aliquot.dialects.kep9.quotas import (
    KINDS,
    has_koordinator_keys,
    namespaces,
    quota,
    quota_name,
)
from aliquot.dialects.koordinator import keys as koordinator
from aliquot.dialects.koordinator.keys import DEFAULT, NAMESPACE, ROOT, SYSTEM
from aliquot.dialects.koordinator.profiles import KIND as PROFILE
from aliquot.dialects.koordinator.profiles import Pools, pools_by_tree, root_names, root_quotas
from aliquot.dialects.quota_parents import placed, quota_levels
from aliquot.dialects.volcano import queues
from aliquot.engine import Membership, Quota, SystemNamespaces, Tree

Special = Literal["", "koordinator", "volcano"]
"""Which dialect's built-in quotas exist without an object: Koordinator's system and default quota,
Volcano's default queue, or none."""

_API_VERSION = "scheduling.sigs.k8s.io/v1alpha1"


@dataclass(frozen=True, slots=True)
class QuotaIndex:
    """Every quota, with its parent and its namespaces resolved."""

    pairs: tuple[tuple[Manifest, Quota], ...] = ()
    """Each ElasticQuota and CompositeElasticQuota: the object, and the engine's quota."""
    queues: tuple[tuple[Manifest, Quota], ...] = ()
    """Each Queue: the object, and the engine's quota."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The engine's name of each quota, by its bare name."""
    quotas: dict[str, Quota] = field(default_factory=dict)
    """All of them by the engine's name, parents before their children."""
    membership: Membership = field(default_factory=Membership)
    has_trees: bool = False
    """Are the ElasticQuotas Koordinator's trees? One Koordinator key on any of them says so."""
    by_label: Mapping[str, tuple[Quota, ...]] | None = None
    """The quotas that a pod's label may mean, by bare name; None where labels do not count."""
    system: SystemNamespaces = field(default_factory=SystemNamespaces)
    trees: Mapping[str, Tree] = field(default_factory=dict)
    """The trees that have something of their own to share, by id."""
    passed_over: frozenset[str] = frozenset()
    """The bare names of the root quotas of profiles where profiles make no trees: quotas below them
    stand at the top."""

    def requested_quota(self, manifest: Manifest, queue: str | None = None) -> str | None:
        """The engine's name of the quota that a pod asks for; None if it asks for none.

        That is Koordinator's system quota for a pod of a system namespace, whatever its label says;
        else the quota named by its label; else `queue`, the pod's queue, where there are queues.
        """
        return self.find_quota(koordinator.quota_named(manifest), manifest.namespace, queue)

    def find_quota(self, named: str | None, namespace: str, queue: str | None = None) -> str | None:
        """The same for a pod of a namespace whose label names this quota, or none."""
        if self.by_label is not None:
            if namespace in self.system:
                return self.names[SYSTEM]
            if named is not None:
                return self._named(named, namespace)
        return queue if self.queues else None

    def closed_quota(self, named: str, namespace: str) -> Quota | None:
        """The quota that the label of a pod in this namespace means, if it is closed to the pod."""
        return self.membership.closed(self.find_quota(named, namespace), namespace)

    def meant_by(self, name: str) -> tuple[Quota, ...]:
        """The quotas that a label with this bare name may mean; none where labels do not count."""
        return self.by_label.get(name, ()) if self.by_label is not None else ()

    def openness(self, name: str) -> list[tuple[str, frozenset[str] | None]]:
        """All on which it depends which quota a label with this bare name means."""
        return [(each.name, each.open_to) for each in self.meant_by(name)]

    def root_of(self, profile: Manifest) -> Manifest | None:
        """The root quota that is kept for a profile; it stays when the profile is deleted."""
        with_trees = self.by_label is not None
        for manifest, _ in self.pairs:
            kept_for = (manifest.metadata.labels or {}).get(koordinator.PROFILE)
            same = (manifest.namespace, kept_for) == (profile.namespace, profile.name)
            if same and _is_root_of_profile(manifest, with_trees):
                return manifest
        return None

    def _named(self, name: str, namespace: str) -> str:
        """The engine's name of the quota that a label of a pod in this namespace means.

        Names should be unique. Of several it is the namespace's own, else one that lists the
        namespace, else one that is open to all. No quota's name, if there is none.
        """
        nearness = partial(_nearness, namespace)
        best = min(self.meant_by(name), key=nearness, default=None)
        return f"{name}/" if best is None else best.name

    def ancestry(self, name: str) -> Iterator[Quota]:
        """The quota itself, then its parent, and so on to the top."""
        found: str | None = name
        while found is not None:
            yield self.quotas[found]
            found = self.quotas[found].parent


def build(
    manifests: Iterable[Manifest],
    special: Special = "",
    system: SystemNamespaces | None = None,
    pools: Pools | None = None,
    models: GpuModels | None = None,
) -> QuotaIndex:
    """The index of the quotas among these objects.

    With Koordinator's built-in quotas, the system quota and the default quota exist whether or not
    there are objects for them; without, an object for the system quota is ignored, because only
    `hierarchy` has a quota without bounds, and so is a default quota that Aliquot wrote and no user
    gave bounds. With Volcano's, the default queue exists. Profiles make trees only with
    Koordinator's; `pools` are their sums, if these are known. A quota is guaranteed at least as
    many cards as it is of models together.
    """
    models = models or GpuModels()
    manifests, system = list(manifests), system or SystemNamespaces()
    found = [each for each in manifests if each.kind in KINDS and not _is_named(each, ROOT)]
    by_label, passed_over = special == "koordinator", frozenset[str]()
    profiles = [each for each in manifests if each.kind == PROFILE] if by_label else []
    if profiles:
        if pools is None:
            pools = Pools()
            pools.rebuild(manifests)
        roots = {each.key: each for each in root_quotas(profiles, pools, found)}
        found = [each for each in found if each.key not in roots or each.group not in KEP9_GROUPS]
        found += roots.values()
    if by_label:
        found += [each for each in built_in() if not any(_is_named(e, each.name) for e in found)]
    else:
        kept = {each.name for each in found if _is_kept_root(each)}
        passed_over = frozenset(kept | set(root_names(manifests)))
        found = [
            each
            for each in found
            if not (_is_named(each, SYSTEM) or _is_filler(each) or _is_kept_root(each))
        ]
    names: dict[str, str] = {}
    for each in sorted(found, key=quota_name, reverse=True):
        if each.group in KEP9_GROUPS:
            names[each.name] = quota_name(each)
    parents = _parents(found, names)
    owners = _owners(found)
    pairs = tuple(
        (
            each,
            _with_parts(
                _quota(
                    each, parents, owners, by_label, _open_to(each, system) if by_label else None
                ),
                models,
            ),
        )
        for each in found
    )
    queue_pairs = tuple(
        (each, _with_parts(one, models)) for each, one in _queues(manifests, special == "volcano")
    )
    quotas = {each.name: each for _, each in (*pairs, *queue_pairs)}
    membership = Membership()
    for one in quotas.values():
        membership.add(one)
    has_trees = special == "koordinator" or any(has_koordinator_keys(each) for each in found)
    ordered = _parents_first(quotas)
    labels = _by_bare_name(pairs) if by_label else None
    trees = dict(_trees(profiles, found)) if by_label else {}
    return QuotaIndex(
        pairs,
        queue_pairs,
        names,
        ordered,
        membership,
        has_trees,
        labels,
        system,
        trees,
        passed_over,
    )


def _trees(profiles: Iterable[Manifest], found: Iterable[Manifest]) -> Iterator[tuple[str, Tree]]:
    """The trees that have nodes or amounts of their own, by id."""
    quotas = [each for each in found if each.group in KEP9_GROUPS]
    for name, pools in pools_by_tree(profiles, quotas).items():
        yield name, Tree(name, pools)


def _with_parts(quota: Quota, models: GpuModels) -> Quota:
    """The quota with at least as many cards in min and deserved as it names there by model."""
    low, deserved = models.with_parts(quota.min), models.with_parts(quota.deserved)
    if low == quota.min and deserved == quota.deserved:
        return quota
    return replace(quota, min=low, deserved=deserved)


def _by_bare_name(pairs: Iterable[tuple[Manifest, Quota]]) -> dict[str, tuple[Quota, ...]]:
    found: dict[str, list[Quota]] = {}
    for manifest, one in pairs:
        if manifest.group in KEP9_GROUPS:
            found.setdefault(manifest.name, []).append(one)
    return {name: tuple(several) for name, several in found.items()}


def _nearness(namespace: str, quota: Quota) -> tuple[bool, bool, bool, str]:
    """The order in which quotas of one name are meant by the pods of a namespace."""
    own = quota.name.startswith(f"{namespace}/")
    listed = quota.open_to is not None and namespace in quota.open_to
    return (not own, not listed, quota.open_to is not None, quota.name)


def _open_to(manifest: Manifest, system: SystemNamespaces) -> frozenset[str] | None:
    """The namespaces whose pods may name a quota; None for all."""
    if _is_named(manifest, SYSTEM):
        return system.names
    listed = namespaces(manifest)
    shared = manifest.namespace in system or manifest.namespace == NAMESPACE
    if not listed and (shared or _is_named(manifest, DEFAULT)):
        return None
    return frozenset((manifest.namespace, *listed))


@cache
def built_in() -> tuple[Manifest, ...]:
    """Koordinator's system quota and default quota, which exist without an object."""
    bodies = (
        {
            "apiVersion": _API_VERSION,
            "kind": "ElasticQuota",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": dict(MADE_BY_ALIQUOT)},
            "spec": {},
        }
        for name in (SYSTEM, DEFAULT)
    )
    manifests = (read(Document("built in", body)) for body in bodies)
    return tuple(each for each in manifests if each is not None)


@cache
def default_queue() -> Manifest:
    """Volcano's default queue, which exists without an object."""
    body = {
        "apiVersion": f"{VOLCANO_GROUP}/v1beta1",
        "kind": queues.KIND,
        "metadata": {"name": queues.DEFAULT, "labels": dict(MADE_BY_ALIQUOT)},
        "spec": {"weight": 1},
    }
    manifest = read(Document("built in", body))
    assert manifest is not None
    return manifest


def _queues(manifests: Iterable[Manifest], special: bool) -> Iterator[tuple[Manifest, Quota]]:
    """The queues, with their parents resolved. The root is the cluster and needs no quota.

    Volcano creates a default queue, as a rule without bounds. Under a policy of quotas it is not
    the quota of every pod that has none, unless the queue has bounds or children.
    """
    found = [each for each in manifests if each.kind == queues.KIND and each.name != queues.ROOT]
    if special and all(each.name != queues.DEFAULT for each in found):
        found.append(default_queue())
    alone = [(each, queues.queue(each)) for each in found]
    if not special:
        above = {queues.parent(each) for each in found}
        alone = [(m, q) for m, q in alone if not q.fallback or q.min or q.max or q.name in above]
    names = {each.name for each, _ in alone}
    written = ((each.name, queues.parent(each)) for each, _ in alone)
    parents = placed({name: up for name, up in written if up in names and up is not None})
    with_children = set(parents.values())
    for manifest, one in alone:
        up = parents.get(one.name)
        yield manifest, replace(one, parent=up, is_parent=one.name in with_children)


def _is_filler(manifest: Manifest) -> bool:
    """Is it a quota that Aliquot wrote, and to which no user has given bounds since?"""
    alone = quota(manifest)
    return made_by_aliquot(manifest) and not alone.min and not alone.max


def _is_root_of_profile(manifest: Manifest, with_trees: bool) -> bool:
    """Is it kept for a profile? Then its max says that it has none."""
    is_profiles = koordinator.PROFILE in (manifest.metadata.labels or {})
    return with_trees and is_profiles and koordinator.keys(manifest).is_root


def _is_kept_root(manifest: Manifest) -> bool:
    """Is it a root quota that is kept for a profile? Its min is no user's."""
    return made_by_aliquot(manifest) and koordinator.PROFILE in (manifest.metadata.labels or {})


def _is_named(manifest: Manifest, name: str) -> bool:
    return manifest.name == name and manifest.group in KEP9_GROUPS


def _quota(
    manifest: Manifest,
    parents: Mapping[str, str],
    owners: Mapping[str, str | None],
    with_trees: bool,
    open_to: frozenset[str] | None,
) -> Quota:
    alone = quota(manifest)
    if manifest.group not in KEP9_GROUPS:
        return alone
    if manifest.name == SYSTEM:
        return Quota(alone.name, unshared=True, open_to=open_to)
    tree = koordinator.keys(manifest).tree if with_trees and manifest.name != DEFAULT else ""
    parent, owns = parents.get(alone.name), owners.get(manifest.namespace) == alone.name
    place = (parent, owns, open_to, tree, with_trees)
    known = _places(manifest)
    if place not in known:
        known[place] = replace(
            alone,
            parent=parent,
            namespaces=alone.namespaces | ({manifest.namespace} if owns else set()),
            fallback=manifest.name == DEFAULT,
            open_to=open_to,
            tree=tree,
            max=() if _is_root_of_profile(manifest, with_trees) else alone.max,
        )
    return known[place]


@once
def _places(manifest: Manifest) -> dict[tuple[object, ...], Quota]:
    """The engine's quotas of a manifest: by parent, whether its namespace is its own, who names it.

    And by tree, where trees count.

    Kept with the manifest, because a quota rarely changes any of them.
    """
    return {}


def _parents(found: Iterable[Manifest], names: Mapping[str, str]) -> dict[str, str]:
    """The parent of each quota whose parent exists and is not below the quota itself."""
    written = (
        (quota_name(each), names.get(koordinator.keys(each).parent))
        for each in found
        if each.group in KEP9_GROUPS
    )
    return placed({name: parent for name, parent in written if parent is not None})


def _owners(found: Iterable[Manifest]) -> dict[str, str | None]:
    """The quota of each namespace: the one of the namespace's name, else the only one in it.

    The first is Koordinator's rule, the second that of the other designs. Parents hold no pods and
    do not count as the only one. A namespace that a quota lists belongs to that quota; a namespace
    with several quotas belongs to none.
    """
    singles = [
        (each, koordinator.keys(each))
        for each in found
        if each.group in KEP9_GROUPS and each.name not in koordinator.SPECIAL
    ]
    listed = {name for _, keys in singles for name in keys.namespaces}
    holders = [each for each, keys in singles if not (keys.is_parent or keys.is_root)]
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


def _parents_first(quotas: Mapping[str, Quota]) -> dict[str, Quota]:
    """By level, and on each level in the order given."""
    levels = quota_levels({name: each.parent for name, each in quotas.items() if each.parent})
    return {name: quotas[name] for name in sorted(quotas, key=lambda each: levels.get(each, 1))}
