"""Warnings about topology: unknown levels, HyperNodes that make no tree, gangs that nothing holds.

A gang that must be in one domain never starts if no domain holds it even when empty. These rules
look at all objects that the input ever brings.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from aliquot.dialects.configuration import Configuration, topology_levels
from aliquot.dialects.core import pods
from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.labels import text_map
from aliquot.dialects.core.manifest import Key, Manifest, key, owner_of
from aliquot.dialects.core.nodes import node
from aliquot.dialects.core.objects import PodWire
from aliquot.dialects.core.pod_templates import template_views
from aliquot.dialects.frameworks.gangs import gangs as job_gangs
from aliquot.dialects.frameworks.gangs import is_job
from aliquot.dialects.nos.cards import Cards
from aliquot.dialects.topology import ANNOTATIONS, HARD, nearness
from aliquot.dialects.volcano import gangs, hyper_nodes
from aliquot.dialects.volcano.hyper_nodes import HyperNodes
from aliquot.dialects.volcano.made_groups import group_name, pod_group
from aliquot.engine import Node, Shape, Topology, node_refusal
from aliquot.mirror.group_membership import group_key, group_ref
from aliquot.mirror.topology import TopologyDemands
from aliquot.validation.history import State


@dataclass(slots=True)
class UnmetTopology:
    """The valid objects that the input ever brings, as far as these rules read them."""

    settings: Configuration
    cards: Cards = field(default_factory=Cards)
    _objects: dict[Key, Manifest] = field(default_factory=dict)

    def add_state(self, state: State) -> None:
        """Take the objects of a state's change."""
        self.cards = state.cards
        for each in state.applied:
            if each.kind in ("Node", hyper_nodes.KIND, gangs.KIND) or template_views(each):
                self._objects[each.key] = each

    def findings(self) -> Iterator[Finding]:
        """All warnings about the objects so far."""
        found = list(self._objects.values())
        tree = HyperNodes(found)
        labels = {
            each.name: text_map(each.metadata.labels, each, "metadata.labels")
            for each in found
            if each.kind == "Node"
        }
        for manifest, at, problem in tree.problems(labels) if labels else ():
            yield manifest.finding("warning", at, problem)
        levels = topology_levels(self.settings)
        for manifest in found:
            yield from _levels_are_known(manifest, levels, labels)
            yield from _is_asked_of_pods(manifest)
        yield from self._gangs_fit(found, tree, levels)

    def _gangs_fit(
        self, found: list[Manifest], tree: HyperNodes, levels: tuple[str, ...]
    ) -> Iterator[Finding]:
        demands = TopologyDemands(levels, lambda _: None)
        demands.refresh({hyper_nodes.KIND}, found)
        nodes = [demands.located(node(each, self.cards)) for each in found if each.kind == "Node"]
        tiers = [tier for tier, _ in tree.tiers.levels] or list(range(1, len(levels) + 1))
        shapes = self._shapes(found)
        for manifest in found:
            if manifest.kind == gangs.KIND:
                group = manifest
            elif group_name(manifest) is not None:
                group = pod_group(manifest)
            else:
                continue
            yield from _tiers_exist(manifest, group, tiers, dict(tree.tiers.names))
            asked = demands.of_group(group)
            if nodes and asked is not None and asked.required:
                yield from _domain_holds(manifest, group, asked, nodes, shapes.get(group.key, []))

    def _shapes(self, found: list[Manifest]) -> dict[Key, list[Shape]]:
        """What the pods of each PodGroup ask for."""
        shapes: dict[Key, list[Shape]] = {}
        for manifest in found:
            made = group_name(manifest)
            for view in template_views(manifest):
                named = group_key(group_ref(view, manifest), manifest.namespace)
                if made is not None:
                    named = key(gangs.KIND, manifest.namespace, made)
                if named is not None:
                    shape = pods.shape(view.spec, None, manifest, self.cards, view.spec_field)
                    shapes.setdefault(named, []).append(shape)
        return shapes


def _levels_are_known(
    manifest: Manifest, levels: tuple[str, ...], labels: dict[str, dict[str, str]]
) -> Iterator[Finding]:
    """Warn of a label that is no level of the configuration, and of one that no node has."""
    places = [("metadata", manifest.metadata)]
    places += [(each.metadata_field, each.metadata) for each in template_views(manifest) if each.at]
    for at, metadata in places:
        asked = nearness(metadata.annotations)
        if asked is None:
            continue
        for word, label in zip(ANNOTATIONS, (asked.required, asked.preferred), strict=True):
            if label is None:
                continue
            where = f"{at}.annotations[{word}]"
            if labels and not any(label in each for each in labels.values()):
                yield manifest.finding("warning", where, f"no node has the label {label}")
            elif label not in levels:
                known = ", ".join(reversed(levels)) or "none"
                problem = f"{label} is not among the levels in `topology` of the configuration"
                problem += f" ({known}): it counts as a level by itself"
                yield manifest.finding("warning", where, problem)


def _is_asked_of_pods(manifest: Manifest) -> Iterator[Finding]:
    """Warn of annotations that reach no pods that start together or have one owner."""
    views = template_views(manifest)
    if nearness(manifest.metadata.annotations) is None or manifest.kind == gangs.KIND:
        return
    if isinstance(manifest.content, PodWire):
        alone = owner_of(manifest) is None
        if alone and group_key(group_ref(views[0], manifest), manifest.namespace) is None:
            problem = "has no effect: the pod is in no gang, and has no owner"
            yield _about_annotations(manifest, problem)
    elif group_name(manifest) is None and not (is_job(manifest) and job_gangs(manifest)):
        problem = "has no effect here: put it on the template of the pods, or on their PodGroup"
        yield _about_annotations(manifest, problem)


def _about_annotations(manifest: Manifest, problem: str) -> Finding:
    written = manifest.metadata.annotations or {}
    word = next(each for each in ANNOTATIONS if each in written)
    return manifest.finding("warning", f"metadata.annotations[{word}]", problem)


def _tiers_exist(
    manifest: Manifest, group: Manifest, tiers: list[int], names: dict[str, int]
) -> Iterator[Finding]:
    """Warn of a tier that there is not."""
    asked = gangs.spec(group).network_topology
    if asked is None:
        return
    at, highest = "spec.networkTopology", asked.highest_tier_allowed
    if not tiers:
        problem = "there are no HyperNodes, and no levels in `topology` of the configuration"
        never = "" if asked.mode not in (None, HARD) else ": its pods never start"
        yield manifest.finding("warning", at, problem + never)
    elif asked.highest_tier_name and asked.highest_tier_name not in names:
        problem = f"no HyperNode has a tier named {asked.highest_tier_name!r}"
        yield manifest.finding("warning", f"{at}.highestTierName", problem)
    elif highest is not None and not tiers[0] <= highest <= tiers[-1]:
        beyond = "above the highest" if highest > tiers[-1] else "below the lowest"
        tier = tiers[-1] if highest > tiers[-1] else tiers[0]
        problem = f"tier {highest} is {beyond} that there is, {tier}"
        yield manifest.finding("warning", f"{at}.highestTierAllowed", problem)


def _domain_holds(
    manifest: Manifest, group: Manifest, asked: Topology, nodes: list[Node], shapes: list[Shape]
) -> Iterator[Finding]:
    """Warn of a gang that no domain holds even when empty."""
    level, least = asked.levels[-1], gangs.gang(group).min_member
    most: dict[str, int] = {}
    for each in nodes:
        domain = dict(each.labels).get(level)
        if domain is not None and shapes:
            fits = max(_held(each, shape, least) for shape in dict.fromkeys(shapes))
            most[domain] = most.get(domain, 0) + fits
    if not most or max(most.values()) >= least:
        return
    best = max(most, key=lambda name: (most[name], name))
    problem = f"no domain of {level} holds {least} of its pods even when empty"
    problem += f": the largest, {best}, holds {most[best]}"
    at = "spec.networkTopology"
    if gangs.spec(group).network_topology is None:
        written = manifest.metadata.annotations or {}
        words = [each for each in ANNOTATIONS if each in written]
        at = f"metadata.annotations[{words[0]}]" if words else "spec.minMember"
    yield manifest.finding("warning", at, problem)


def _held(each: Node, shape: Shape, most: int) -> int:
    """How many such pods an empty node holds, at most `most`."""
    if node_refusal(shape.constraints, each) is not None:
        return 0
    has = dict(each.allocatable)
    return min([most, *(has.get(name, 0) // amount for name, amount in shape.requests)])
