"""Which policy holds: the one that is named, else the one that the objects ask for."""

from collections.abc import Iterable
from dataclasses import dataclass

from aliquot.dialects.configuration import Configuration
from aliquot.dialects.findings import Finding
from aliquot.dialects.koordinator import has_keys, pod_labels
from aliquot.dialects.manifest import NOS_GROUPS, Manifest
from aliquot.dialects.quotas import KINDS, has_koordinator_keys
from aliquot.dialects.wire import PodWire, WorkloadWire
from aliquot.engine.policies import POLICIES
from aliquot.errors import InputError


@dataclass(frozen=True, slots=True)
class Choice:
    """The policy that the objects ask for, and the object that decides it, if one does."""

    policy: str
    why: str
    manifest: Manifest | None = None
    field: str = ""

    def refusal(self) -> Finding | None:
        """What is wrong with it: the policy may not be there."""
        if self.manifest is None or self.policy in POLICIES:
            return None
        problem = f"asks for policy {self.policy} ({self.why}), which {_not_available()}"
        return Finding("error", self.manifest.place, self.manifest.title, self.field, problem)


def resolve(
    named: str | None, configuration: Configuration, manifests: Iterable[Manifest]
) -> tuple[str, str]:
    """The policy and why: named on the command line, in the configuration, or by the objects."""
    policy, why = named or configured(configuration), "as given" if named else "as configured"
    if policy == "auto":
        choice = choose(manifests)
        refusal = choice.refusal()
        if refusal is not None:
            raise refusal.error()
        return choice.policy, choice.why
    if policy not in POLICIES:
        raise InputError(f"policy {policy} ({why})", "", _not_available())
    return policy, why


def configured(configuration: Configuration) -> str:
    """The policy of the configuration."""
    return configuration.profiles[0].policy if configuration.profiles else "auto"


def choose(manifests: Iterable[Manifest]) -> Choice:
    """Decided once, over all objects."""
    manifests = list(manifests)
    quotas = [manifest for manifest in manifests if manifest.kind in KINDS]
    for manifest in (*quotas, *manifests):
        if _is_for_koordinator(manifest):
            why = f"{manifest.title} carries Koordinator keys"
            return Choice("hierarchy", why, manifest, "metadata")
    for manifest in quotas:
        if manifest.group in NOS_GROUPS:
            why = f"{manifest.title} is of {manifest.group}"
            return Choice("fair", why, manifest, "apiVersion")
    if not quotas:
        return Choice("capacity", "there are no quotas")
    return Choice("capacity", f"all quotas are ElasticQuotas of {quotas[0].group}")


def has_special_quotas(policy: str) -> bool:
    """Are there, under this policy, quotas that nobody wrote: for the system, and by default?"""
    return policy == "hierarchy"


def expected(configuration: Configuration, manifests: Iterable[Manifest]) -> str:
    """The policy that holds unless the command line says otherwise, available or not."""
    policy = configured(configuration)
    return choose(manifests).policy if policy == "auto" else policy


def _is_for_koordinator(manifest: Manifest) -> bool:
    """Quotas say so in any key, pods in the labels that name a quota or spare them."""
    if isinstance(manifest.content, PodWire | WorkloadWire):
        return has_keys((pod_labels(manifest)[0],))
    return manifest.kind in KINDS and has_koordinator_keys(manifest)


def _not_available() -> str:
    return f"is not available yet; there is {', '.join(sorted(POLICIES))}"
