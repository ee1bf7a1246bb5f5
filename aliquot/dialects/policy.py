"""Which policy holds: the one that is named, else the one that the objects ask for."""

from collections.abc import Iterable

from aliquot.dialects.configuration import Configuration
from aliquot.dialects.manifest import NOS_GROUPS, Manifest
from aliquot.dialects.quotas import has_koordinator_keys
from aliquot.engine.policies import POLICIES
from aliquot.errors import InputError


def resolve(
    named: str | None, configuration: Configuration, manifests: Iterable[Manifest]
) -> tuple[str, str]:
    """The policy and why: named on the command line, in the configuration, or by the objects."""
    profiles = configuration.profiles
    configured = profiles[0].policy if profiles else "auto"
    policy, why = named or configured, "as given" if named else "as configured"
    if policy == "auto":
        policy, why = choose(manifests)
    if policy not in POLICIES:
        known = ", ".join(sorted(POLICIES))
        raise InputError(f"policy {policy} ({why})", "", f"is not available yet; there is {known}")
    return policy, why


def choose(manifests: Iterable[Manifest]) -> tuple[str, str]:
    """The policy, and why: decided once, over all objects."""
    quotas = [manifest for manifest in manifests if manifest.kind == "ElasticQuota"]
    for manifest in quotas:
        if has_koordinator_keys(manifest):
            return "hierarchy", f"{manifest.title} carries Koordinator keys"
    for manifest in quotas:
        if manifest.group in NOS_GROUPS:
            return "fair", f"{manifest.title} is of {manifest.group}"
    if not quotas:
        return "capacity", "there are no quotas"
    return "capacity", f"all quotas are ElasticQuotas of {quotas[0].group}"
