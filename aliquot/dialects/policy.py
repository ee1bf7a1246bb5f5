"""Which policy applies: the one that is named, else the one that the objects imply (`auto`).

Queues imply `queues`, Koordinator keys and profiles `hierarchy`, quotas of nos `fair`, all others
`capacity`. Only quotas and queues that users wrote imply anything: not pods, or a tenant's label
would change the policy of the whole cluster; and nothing that Aliquot itself writes, or a policy
would outlive the objects that it came from.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.manifest import NOS_GROUPS, Manifest, made_by_aliquot
from aliquot.dialects.kep9.quotas import KINDS, has_koordinator_keys
from aliquot.dialects.koordinator.profiles import KIND as PROFILE
from aliquot.dialects.quota_index import Special
from aliquot.dialects.tensor_fusion import quotas as gpu_quotas
from aliquot.dialects.volcano import queues


@dataclass(frozen=True, slots=True)
class Choice:
    """The policy that the objects imply, and the object that decides it, if one does.

    Where the objects imply two policies, `conflict` says so.
    """

    policy: str
    why: str
    manifest: Manifest | None = None
    field: str = ""
    conflict: str = ""

    def refusal(self) -> Finding | None:
        """The error that the objects imply two policies, if they do."""
        if self.manifest is None or not self.conflict:
            return None
        return self.manifest.finding("error", self.field, self.conflict)


def resolve(
    named: str | None, configuration: Configuration, manifests: Iterable[Manifest]
) -> tuple[str, str]:
    """The policy and why: as given by `named` or the configuration, or implied by the objects."""
    policy, why = named or configured(configuration), "as given" if named else "as configured"
    if policy == "auto":
        choice = choose(manifests)
        refusal = choice.refusal()
        if refusal is not None:
            raise refusal.error()
        return choice.policy, choice.why
    return policy, why


def configured(configuration: Configuration) -> str:
    """The policy of the configuration."""
    return configuration.profiles[0].policy if configuration.profiles else "auto"


def choose(manifests: Iterable[Manifest]) -> Choice:
    """The policy that all objects together imply."""
    manifests = [manifest for manifest in manifests if not made_by_aliquot(manifest)]
    quotas = [manifest for manifest in manifests if manifest.kind in KINDS]
    profiles = [manifest for manifest in manifests if manifest.kind == PROFILE]
    queue = next(filter(_is_own_queue, manifests), None)
    if queue is not None:
        return _queues(queue, [*quotas, *profiles])
    for manifest in quotas:
        if has_koordinator_keys(manifest):
            why = f"{manifest.title} carries Koordinator keys"
            return Choice("hierarchy", why, manifest, "metadata")
    if profiles:
        return Choice("hierarchy", f"there is {profiles[0].title}", profiles[0], "kind")
    for manifest in quotas:
        if manifest.group in NOS_GROUPS:
            why = f"{manifest.title} is of {manifest.group}"
            return Choice("fair", why, manifest, "apiVersion")
    if not quotas:
        only = any(manifest.kind == gpu_quotas.KIND for manifest in manifests)
        return Choice("capacity", f"there are no quotas{' but those on GPUs' if only else ''}")
    return Choice("capacity", f"all quotas are ElasticQuotas of {quotas[0].group}")


def _is_own_queue(manifest: Manifest) -> bool:
    """Is it a queue other than Volcano's own two, which exist in every cluster with Volcano?"""
    return manifest.kind == queues.KIND and manifest.name not in queues.SPECIAL


def _queues(queue: Manifest, quotas: list[Manifest]) -> Choice:
    """Queues imply `queues`; with quotas beside them, the policy must be named."""
    why = f"there is {queue.title}"
    if not quotas:
        return Choice("queues", why, queue, "kind")
    other = f"{quotas[0].title} ({quotas[0].place})"
    conflict = f"there are queues and quotas, such as {other}; say which policy holds by --policy"
    return Choice("queues", why, queue, "kind", conflict)


def special_quotas(policy: str) -> Special:
    """The dialect whose built-in quotas exist under this policy."""
    special: dict[str, Special] = {"hierarchy": "koordinator", "queues": "volcano"}
    return special.get(policy, "")


def expected(
    configuration: Configuration, manifests: Iterable[Manifest], named: str | None = None
) -> str:
    """The policy as named or configured, else the one that the objects imply."""
    policy = named or configured(configuration)
    return choose(manifests).policy if policy == "auto" else policy
