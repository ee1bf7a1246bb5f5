"""Warnings for what pods ask of other pods and of ports, where nothing in the input can meet it.

A topology key that no node has; pods that nothing is or makes; one host port twice in a pod. Like
`unmet_requests`, they look at all objects that the input ever brings.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from aliquot.dialects.core import pod_rules
from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.labels import text_map
from aliquot.dialects.core.manifest import Key, Manifest
from aliquot.dialects.core.objects import PodSpec
from aliquot.dialects.core.pod_templates import PodTemplateView, template_views
from aliquot.engine import AffinityTerm, PodSelector, clashes, requirement_matches
from aliquot.mirror.namespaces import NAME_LABEL
from aliquot.validation.history import State
from aliquot.validation.pod_specs import repeated_ports

_Labels = Mapping[str, str]


@dataclass(slots=True)
class UnmetRules:
    """The valid objects that the input ever brings, as far as these rules read them."""

    _objects: dict[Key, Manifest] = field(default_factory=dict)
    _knows_all_nodes: bool = True

    def add_state(self, state: State) -> None:
        """Take the objects of a state's change."""
        self._knows_all_nodes &= state.knows_all_nodes
        for each in state.applied:
            if each.kind in ("Namespace", "Node") or template_views(each):
                self._objects[each.key] = each

    def findings(self) -> Iterator[Finding]:
        """All warnings about the objects so far."""
        with_rules = [
            (manifest, view, view.spec)
            for manifest in self._objects.values()
            for view in template_views(manifest)
            if view.spec is not None and pod_rules.has_rules(view.spec)
        ]
        if not with_rules:
            return
        nodes = [each for each in self._objects.values() if each.kind == "Node"]
        keys = {key for each in nodes for key in each.metadata.labels or ()}
        pods = self._pods()
        for manifest, view, spec in with_rules:
            yield from ports_are_asked_for_once(manifest, view, spec)
            if nodes and self._knows_all_nodes and not spec.node_name:
                yield from self._about_others(manifest, view, spec, keys, pods)

    def _about_others(
        self,
        manifest: Manifest,
        view: PodTemplateView,
        spec: PodSpec,
        keys: set[str],
        pods: list[tuple[str, _Labels]],
    ) -> Iterator[Finding]:
        labels = text_map(view.metadata.labels, manifest, f"{view.metadata_field}.labels")
        rules = pod_rules.pod_rules(spec, manifest, labels, view.spec_field)
        for term in rules.affinity:
            where = f"{view.spec_field}.affinity.podAffinity"
            if term.topology_key not in keys:
                yield _can_never_start(manifest, where, term.topology_key)
            elif not self._selects_any(term, [*pods, (manifest.namespace, labels)]):
                problem = "is about pods that nothing in the input is or makes"
                yield manifest.finding("warning", where, f"{problem}: it waits for them")
        for each in rules.spread:
            if each.required and each.topology_key not in keys:
                where = f"{view.spec_field}.topologySpreadConstraints"
                yield _can_never_start(manifest, where, each.topology_key)

    def _pods(self) -> list[tuple[str, _Labels]]:
        """Namespace and labels of the pods that are there or that an object makes."""
        found: dict[tuple[str, tuple[tuple[str, str], ...]], None] = {}
        for manifest in self._objects.values():
            for view in template_views(manifest):
                labels = text_map(view.metadata.labels, manifest, f"{view.metadata_field}.labels")
                found[manifest.namespace, tuple(sorted(labels.items()))] = None
        return [(namespace, dict(labels)) for namespace, labels in found]

    def _selects_any(self, term: AffinityTerm, pods: list[tuple[str, _Labels]]) -> bool:
        wanted = term.selector.labels
        return wanted is not None and any(
            self._is_about(term.selector, namespace)
            and all(requirement_matches(each, labels) for each in wanted)
            for namespace, labels in pods
        )

    def _is_about(self, selector: PodSelector, namespace: str) -> bool:
        """Is a selector about the pods of a namespace?"""
        if namespace in selector.namespaces:
            return True
        known = self._objects.get(("Namespace", "", namespace))
        written = known.metadata.labels if known is not None else None
        labels = {key: str(value) for key, value in (written or {}).items()}
        labels[NAME_LABEL] = namespace
        wanted = selector.namespace_selector
        return wanted is not None and all(requirement_matches(each, labels) for each in wanted)


def ports_are_asked_for_once(
    manifest: Manifest, view: PodTemplateView, spec: PodSpec
) -> Iterator[Finding]:
    """Warn of a port of the node that a pod asks for twice: only one container can have it.

    Where two containers ask for the very same, a server refuses the pod (`pod_specs`).
    """
    wanted = pod_rules.host_ports(spec, view.spec_field)
    refused = {each.field for each in repeated_ports(manifest, view, spec)}
    pairs = ((first, each) for i, each in enumerate(wanted) for first in wanted[:i])
    for (first, one), (second, other) in pairs:
        if clashes(one, (other,)) and f"{second}.hostPort" not in refused:
            problem = f"the port {other.port} of the node is asked for in {first} already"
            yield manifest.finding("warning", f"{second}.hostPort", problem)


def _can_never_start(manifest: Manifest, where: str, key: str) -> Finding:
    problem = f"can never start: no node has the label {key}"
    return manifest.finding("warning", where, problem)
