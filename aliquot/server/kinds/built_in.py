"""The built-in kinds: those of Kubernetes that the embedded server always serves."""

from typing import Any

from aliquot.server.kinds.answered_kinds import ANSWERED_KINDS
from aliquot.server.kinds.kind import Kind
from aliquot.server.kinds.stored_kinds import STORED_KINDS


def _core(name: str, plural: str, *short: str, **more: Any) -> Kind:
    return Kind("", "v1", name, plural, short_names=short, **more)


_STATUS = ("status",)
_SCALED = ("status", "scale")
_ALL = ("all",)

BUILT_IN: tuple[Kind, ...] = (
    _core("ConfigMap", "configmaps", "cm", generation=False),
    _core("Event", "events", "ev", generation=False),
    _core(
        "Namespace",
        "namespaces",
        "ns",
        namespaced=False,
        subresources=("status", "finalize"),
        generation=False,
    ),
    _core("Node", "nodes", "no", namespaced=False, subresources=_STATUS, generation=False),
    _core(
        "Pod",
        "pods",
        "po",
        categories=_ALL,
        subresources=(
            *("status", "attach", "binding", "eviction", "exec", "log", "portforward", "resize"),
        ),
    ),
    _core("ResourceQuota", "resourcequotas", "quota", subresources=_STATUS, generation=False),
    _core("Secret", "secrets", generation=False),
    _core("ServiceAccount", "serviceaccounts", "sa", subresources=("token",), generation=False),
    Kind("apps", "v1", "Deployment", "deployments", True, ("deploy",), _ALL, subresources=_SCALED),
    Kind("apps", "v1", "ReplicaSet", "replicasets", True, ("rs",), _ALL, subresources=_SCALED),
    Kind("batch", "v1", "Job", "jobs", categories=_ALL, subresources=_STATUS),
    Kind("coordination.k8s.io", "v1", "Lease", "leases", generation=False),
    Kind(
        "events.k8s.io",
        "v1",
        "Event",
        "events",
        short_names=("ev",),
        generation=False,
        shared_storage="events",
    ),
    Kind(
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        True,
        ("pdb",),
        subresources=_STATUS,
    ),
    Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", False, ("pc",)),
    Kind(
        "admissionregistration.k8s.io",
        "v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        False,
        categories=("api-extensions",),
    ),
    Kind(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        False,
        categories=("api-extensions",),
    ),
    Kind(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        False,
        ("crd", "crds"),
        ("api-extensions",),
        _STATUS,
    ),
    *STORED_KINDS,
    *ANSWERED_KINDS,
)
