"""What pods of one template have in common, worked out once for all of them.

Pods with the same encoded spec request the same and have the same images and the same rules
written. What the rules become depends besides on the namespace, and on those labels of the pod that
they read (`matchLabelKeys`, the selectors of topology spread); on no others, so that pods with
labels of their own, such as an index, share rules as well. That a pod has no rules is known by its
spec, too: so most pods pay nothing for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from aliquot.dialects.core import pod_rules, pods
from aliquot.dialects.core.labels import text_map
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import PodSpec, PodStatus
from aliquot.dialects.nos.cards import Cards
from aliquot.engine import NO_RULES, PodRules, Shape

_MOST_TEMPLATES = 20_000
"""Templates kept: far more than a cluster has; beyond it, the cache starts again empty."""
_MOST_RULES = 1_000
"""Rules kept of one template: with more, each pod has its own, and none is met again."""
_Values = tuple[str | None, ...]


@dataclass(slots=True)
class _Template:
    """A spec: its shape and images, and its rules by what they depend on."""

    shape: Shape
    images: tuple[str, ...]
    label_keys: tuple[str, ...] | None
    """The labels of the pod that the rules read; None if there are no rules."""
    rules: dict[tuple[str, _Values], PodRules] = field(default_factory=dict)


class TemplateCache:
    """Shapes, images and rules of pods by their encoded spec."""

    def __init__(self, cards: Cards) -> None:
        self._cards = cards
        self._templates: dict[bytes, _Template] = {}
        self._encoder = msgspec.json.Encoder()

    def read(
        self, spec: PodSpec, status: PodStatus, manifest: Manifest
    ) -> tuple[Shape, PodRules, tuple[str, ...]]:
        """What a pod requests, its rules, but for its volumes, and its images."""
        encoded = self._encoder.encode(
            (
                *(spec.containers, spec.init_containers, spec.resources, spec.overhead),
                *(spec.node_selector, spec.affinity, spec.tolerations, spec.host_network),
                spec.topology_spread_constraints,
                *(status.container_statuses, status.init_container_statuses),
            )
        )
        template = self._templates.get(encoded)
        if template is None:
            if len(self._templates) >= _MOST_TEMPLATES:
                self._templates.clear()
            shape = pods.shape(spec, status, manifest, self._cards)
            keys = pod_rules.label_keys(spec) if pod_rules.has_rules(spec) else None
            template = self._templates[encoded] = _Template(
                shape, pods.container_images(spec), keys
            )
        if template.label_keys is None:
            return template.shape, NO_RULES, template.images
        rules = _rules(template, template.label_keys, spec, manifest)
        return template.shape, rules, template.images


def _rules(
    template: _Template, keys: tuple[str, ...], spec: PodSpec, manifest: Manifest
) -> PodRules:
    labels: Mapping[str, str] = text_map(manifest.metadata.labels, manifest, "metadata.labels")
    known = (manifest.namespace, tuple(map(labels.get, keys)))
    found = template.rules.get(known)
    if found is None:
        if len(template.rules) >= _MOST_RULES:
            template.rules.clear()
        pod_rules.check(spec, manifest, "spec")
        found = template.rules[known] = pod_rules.pod_rules(spec, manifest, labels)
    return found
