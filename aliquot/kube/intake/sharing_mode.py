"""The sharing mode of a cluster: its policy, and how GPUs are counted; derived from its objects.

Both are decided from all objects together; how GPUs are counted, also with hints from pods. The
policy never follows from pods, which any tenant can write. When the mode changes, the same pods and
quotas have another meaning, so the intake lists all pods again.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from aliquot.dialects import policy
from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.nos.cards import Cards, cards
from aliquot.dialects.tensor_fusion.sharing import counts_compute
from aliquot.errors import InputError


@dataclass(frozen=True, slots=True)
class PodHints:
    """What the pods of a cluster imply for its sharing mode."""

    sharing: bool = False
    """Does any pod request parts of GPUs?"""
    compute: bool = False
    """Does any pod request compute (TFLOPs) of a GPU?"""

    def and_also(self, other: "PodHints") -> "PodHints":
        """Both hints together."""
        return PodHints(
            self.sharing or other.sharing,
            self.compute or other.compute,
        )


@dataclass(frozen=True, slots=True)
class SharingMode:
    """How a cluster is shared, and why; `why` is for the log."""

    policy: str
    cards: Cards
    why: str = field(compare=False)


def sharing_mode(
    configuration: Configuration,
    named: str | None,
    manifests: Iterable[Manifest],
    hints: PodHints,
) -> SharingMode:
    """The mode of a cluster with these objects; contradictions among them are refused."""
    manifests = list(manifests)
    chosen, why = policy.resolve(named, configuration, manifests)
    found = cards(configuration.gpu, manifests)
    shared = found.shared or hints.sharing
    compute = shared and (found.compute or hints.compute or counts_compute(manifests))
    return SharingMode(chosen, replace(found, shared=shared, compute=compute), why)


def one_policy(configuration: Configuration) -> None:
    """Refuse profiles with different policies: one cluster has one sharing mode."""
    found = {each.policy for each in configuration.profiles}
    if len(found) > 1:
        listed = ", ".join(
            f"{each.scheduler_name}: {each.policy}" for each in configuration.profiles
        )
        problem = f"must all have one policy, because they share one cluster ({listed})"
        raise InputError("configuration", "profiles", problem)
