"""GPU models: of which model the cards of a node are, and what quotas name of it.

A quota may bound and guarantee cards of one model as `gpu.aliquot.dev/<model>`, beside all cards
(`nvidia.com/gpu`, `amd.com/gpu`). The model is what the node's label says, or the group of the
configuration that lists that value. A value that an API server would not accept as a label is no
model: such cards count among all cards only. Only models that some quota names are told apart.

A model is NVIDIA's or AMD's: what nodes have it decides, else its name. So it is known of which
cards its min is a part.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from aliquot.dialects.core.labels import to_text
from aliquot.dialects.schemas.names import label_value
from aliquot.engine import MODEL_PREFIX, Amounts

NVIDIA, AMD = "nvidia.com/gpu", "amd.com/gpu"
LABELS = {NVIDIA: "nvidia.com/gpu.product", AMD: "amd.com/gpu.product-name"}
"""By resource of cards, the node label with their model."""
_OF_AMD = re.compile(r"amd|instinct|radeon|\bmi[0-9]{2,3}", re.IGNORECASE)
"""Names of AMD's models, such as `AMD_Instinct_MI300X_OAM` or `mi250`."""

Labels = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class GpuModels:
    """Which models there are, and which of them quotas name."""

    groups: Mapping[str, str] = field(default_factory=dict)
    """The group of each label value that is listed in one."""
    named: frozenset[str] | None = frozenset()
    """The resources of models that quotas name; None if all count."""
    cards: Mapping[str, str] = field(default_factory=dict)
    """The cards that a model is of, where nodes have it and its name says otherwise."""

    def of_node(self, has: Mapping[str, int], labels: Labels) -> tuple[tuple[str, str], ...]:
        """Each resource of cards that a node has, with the resource of their model."""
        if self.named is not None and not self.named:
            return ()
        found = ((cards, self.resource(to_text(labels.get(key)))) for cards, key in LABELS.items())
        return tuple(
            (cards, model)
            for cards, model in found
            if has.get(cards) and self._counts(model) and self.cards_of(model) == cards
        )

    def amounts(self, has: Mapping[str, int], labels: Labels) -> dict[str, int]:
        """What a node has of models."""
        return {model: has[cards] for cards, model in self.of_node(has, labels)}

    def _counts(self, resource: str) -> bool:
        return bool(resource) and (self.named is None or resource in self.named)

    def resource(self, value: str) -> str:
        """The resource of a label's value; empty if it is no model."""
        if not value or label_value(value):
            return ""
        return MODEL_PREFIX + self.groups.get(value, value)

    def cards_of(self, resource: str) -> str:
        """The cards that a model is of: as nodes have it, else by its name."""
        known = self.cards.get(resource)
        if known is None:
            name = resource.removeprefix(MODEL_PREFIX)
            values = (value for value, group in self.groups.items() if group == name)
            known = AMD if any(map(_OF_AMD.search, (name, *values))) else NVIDIA
        return known

    def with_parts(self, amounts: Amounts) -> Amounts:
        """These amounts, with at least as many cards as they name of models together."""
        parts: dict[str, int] = {}
        for name, amount in amounts:
            if is_model(name):
                cards = self.cards_of(name)
                parts[cards] = parts.get(cards, 0) + amount
        if not parts:
            return amounts
        found = dict(amounts)
        found.update({name: max(found.get(name, 0), amount) for name, amount in parts.items()})
        return tuple(sorted(found.items()))


def is_model(resource: str) -> bool:
    """Is the resource cards of one model?"""
    return resource.startswith(MODEL_PREFIX)


def gpu_models(
    groups: Mapping[str, Iterable[str]], named: Iterable[str], nodes: Iterable[Labels]
) -> GpuModels:
    """The models of these nodes, of which quotas name these."""
    by_value = {value: group for group, values in groups.items() for value in values}
    resources = frozenset(named)
    bare = GpuModels(by_value, resources)
    if not resources:
        return bare
    by_nodes = dict(_cards(bare, nodes))
    differing = {name: kind for name, kind in by_nodes.items() if kind != bare.cards_of(name)}
    return GpuModels(by_value, resources, differing)


def _cards(models: GpuModels, nodes: Iterable[Labels]) -> Iterator[tuple[str, str]]:
    """The cards of each model, by the labels of nodes; NVIDIA's if both say so."""
    found = list(nodes)
    for cards in (AMD, NVIDIA):
        values = {to_text(each[LABELS[cards]]) for each in found if LABELS[cards] in each}
        resources = (models.resource(value) for value in sorted(values))
        yield from ((each, cards) for each in resources if each in (models.named or ()))
