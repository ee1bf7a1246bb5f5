"""System namespaces: whose pods keep the cluster going. The only place that knows which they are.

Kubernetes lets any namespace use a system-critical priority, and lets any pod carry any label. So
neither makes a pod one of the system: only its namespace does, which a tenant cannot choose.
"""

from dataclasses import dataclass

from aliquot.engine.model.checks import check
from aliquot.engine.model.pod import Pod

KUBE_SYSTEM = "kube-system"

CRITICAL_PRIORITY = 2_000_000_000
"""The priority from which on a pod of the system is critical: that of Kubernetes' own PriorityClass
`system-cluster-critical`, twice the highest that users may give."""


@dataclass(frozen=True, slots=True)
class SystemNamespaces:
    """`kube-system`, and those that the configuration adds to it (`systemNamespaces`)."""

    more: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        check(self.more, frozenset, "system namespaces")

    @property
    def names(self) -> frozenset[str]:
        """All of them."""
        return self.more | {KUBE_SYSTEM}

    def __contains__(self, namespace: object) -> bool:
        return namespace == KUBE_SYSTEM or namespace in self.more

    def is_critical(self, namespace: str, priority: int) -> bool:
        """May a pod always preempt, and is it never a victim? Elsewhere it has but a priority."""
        return priority >= CRITICAL_PRIORITY and namespace in self

    def needs(self, pod: Pod, all_of_them: bool = False) -> bool:
        """Is a pod never a victim? Those that are critical, or `all_of_them` of the system."""
        least = pod.priority if all_of_them else CRITICAL_PRIORITY
        return pod.priority >= least and pod.namespace in self
