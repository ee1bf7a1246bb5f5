"""Kinds of objects as the API addresses them: where they are, one by one or all together.

Only the kinds that the control plane reads or writes are named here. Those that Kubernetes does not
have come from their definitions, so that a new dialect is watched without a line being added.
"""

from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote

from aliquot.dialects.crds import DEFINITIONS


@dataclass(frozen=True)
class Resource:
    """A kind of objects; the group of the oldest kinds is empty."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    def path(self, namespace: str | None = None, name: str | None = None, part: str = "") -> str:
        """Where all of them are, or those of a namespace, or one, or a part of one."""
        where = f"{self._root}/namespaces/{_plain(namespace)}" if namespace else self._root
        where = f"{where}/{self.plural}"
        if name:
            where = f"{where}/{_plain(name)}"
        return f"{where}/{part}" if part else where

    @property
    def full_name(self) -> str:
        """Plural and group, as a definition of the kind is called."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """Group and version, as they stand in an object."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def _root(self) -> str:
        return f"/{'apis' if self.group else 'api'}/{self.api_version}"


def _plain(word: str) -> str:
    """A name as part of a path: most are as they are, and finding that out is all it costs."""
    return word if word.replace("-", "").isalnum() and word.isascii() else quote(word, safe="")


PODS = Resource("", "v1", "pods", "Pod")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
RESOURCE_QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
EVENTS = Resource("", "v1", "events", "Event")
SECRETS = Resource("", "v1", "secrets", "Secret")
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False
)
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
VALIDATING_WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
MUTATING_WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
DEFINITIONS_OF_KINDS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)

CUSTOM: dict[str, Resource] = {
    f"{each.plural}.{each.group}": Resource(
        each.group, each.version, each.plural, each.kind, each.namespaced
    )
    for each in DEFINITIONS
}
"""Every kind of ours, by the name of its definition."""
