"""How near to each other pods ask to run: annotations that name a level, and Volcano's tiers.

A level is a label of nodes. The annotation `topology-required` names the widest level of which one
domain must hold the whole gang, `topology-preferred` the narrowest that is sought. Volcano's
`networkTopology` counts in tiers of HyperNodes, and where there are none, in the levels of the
configuration: its narrowest is tier 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aliquot.dialects.core.labels import to_text
from aliquot.dialects.core.manifest import ALIQUOT_GROUP, Manifest
from aliquot.dialects.volcano.objects import NetworkTopologyWire
from aliquot.engine import Topology

REQUIRED = f"{ALIQUOT_GROUP}/topology-required"
PREFERRED = f"{ALIQUOT_GROUP}/topology-preferred"
ANNOTATIONS = (REQUIRED, PREFERRED)
SOFT, HARD = "soft", "hard"
NO_TIERS = "HyperNode tier"
"""The level that a gang asks for which names a tier where there are none: no node is in it."""


@dataclass(frozen=True, slots=True)
class Nearness:
    """The levels that annotations name, if they do."""

    required: str | None = None
    preferred: str | None = None


def nearness(annotations: Mapping[str, Any] | None) -> Nearness | None:
    """What annotations ask for; None if they ask for nothing. Empty text asks for nothing."""
    if not annotations or not (REQUIRED in annotations or PREFERRED in annotations):
        return None
    required, preferred = (to_text(annotations.get(key)) or None for key in ANNOTATIONS)
    return Nearness(required, preferred) if required or preferred else None


def of_labels(asked: Nearness, levels: Sequence[str]) -> Topology:
    """What is asked for, as levels from narrow to wide; `levels` are those of the configuration.

    A label that is not among these is a level by itself.
    """
    required, preferred = asked.required, asked.preferred
    if required is None:
        assert preferred is not None
        known = tuple(levels[levels.index(preferred) :]) if preferred in levels else (preferred,)
        return Topology(known, required=False)
    if preferred is None or preferred not in levels or required not in levels:
        return Topology(tuple(dict.fromkeys((preferred or required, required))))
    between = levels[levels.index(preferred) : levels.index(required) + 1]
    return Topology(tuple(between) or (required,))


@dataclass(frozen=True, slots=True)
class Tiers:
    """The tiers that are known, from narrow to wide: the level of each, and the names of tiers."""

    levels: tuple[tuple[int, str], ...] = ()
    names: tuple[tuple[str, int], ...] = ()


def of_tiers(asked: NetworkTopologyWire, tiers: Tiers) -> Topology | None:
    """What a `networkTopology` asks for, as levels from narrow to wide."""
    if asked.mode == SOFT:
        every = tuple(level for _, level in tiers.levels)
        return Topology(every, required=False) if every else None
    highest = asked.highest_tier_allowed
    if asked.highest_tier_name:
        highest = dict(tiers.names).get(asked.highest_tier_name, -1)
    allowed = [level for tier, level in tiers.levels if highest is None or tier <= highest]
    named = asked.highest_tier_name or ("" if highest is None else str(highest))
    return Topology(tuple(allowed) or (f"{NO_TIERS} {named}".rstrip(),))


def copied(manifest: Manifest) -> dict[str, str]:
    """The annotations of a workload, for the PodGroup that is made for it."""
    written = manifest.metadata.annotations or {}
    return {key: to_text(written[key]) for key in ANNOTATIONS if to_text(written.get(key))}
