"""On what terms a cluster is shared: the policy, and what cards come to; found in its objects.

Both are decided over all objects together, and pods have a say in them. When they change, pods and
quotas mean something else than before, and everything is read anew.
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
    """What pods have to say about it."""

    koordinator: bool = False
    """Is any written for Koordinator?"""
    sharing: bool = False
    """Does any ask for parts of GPUs?"""
    compute: bool = False
    """Does it matter to any what those can compute?"""

    def and_also(self, other: "PodHints") -> "PodHints":
        """What these say, and those."""
        return PodHints(
            self.koordinator or other.koordinator,
            self.sharing or other.sharing,
            self.compute or other.compute,
        )


@dataclass(frozen=True, slots=True)
class SharingMode:
    """How a cluster is shared, and why."""

    policy: str
    cards: Cards
    why: str = field(compare=False)


def sharing_mode(
    configuration: Configuration,
    named: str | None,
    manifests: Iterable[Manifest],
    pleas: PodHints,
) -> SharingMode:
    """Those of a cluster with these objects. Objects that contradict each other are refused."""
    manifests = list(manifests)
    chosen, why = policy.resolve(named, configuration, manifests)
    open_to_pods = (named or policy.configured(configuration)) == "auto"
    if open_to_pods and pleas.koordinator and chosen != "queues":
        chosen, why = "hierarchy", "there are pods that carry Koordinator keys"
    found = cards(configuration.gpu, manifests)
    shared = found.shared or pleas.sharing
    compute = shared and (found.compute or pleas.compute or counts_compute(manifests))
    return SharingMode(chosen, replace(found, shared=shared, compute=compute), why)


def one_policy(configuration: Configuration) -> None:
    """Refuse profiles that do not agree: one cluster is shared on one set of terms."""
    found = {each.policy for each in configuration.profiles}
    if len(found) > 1:
        said = ", ".join(f"{each.scheduler_name}: {each.policy}" for each in configuration.profiles)
        problem = f"must all have one policy, because they share one cluster ({said})"
        raise InputError("configuration", "profiles", problem)
