"""Kinds: what the server keeps, and under which names it is asked for.

A kind is known by group, version and plural. Two kinds may keep the same objects in two forms, as
the two sorts of Event do; `storage` is where they are kept, and one form is the one that is kept.
"""

from dataclasses import dataclass
from typing import Any

from aliquot.dialects.core.documents import Body

OWN = {
    "": [
        "Binding",
        "ConfigMap",
        "Endpoints",
        "Event",
        "LimitRange",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "PodTemplate",
        "ReplicationController",
        "ResourceQuota",
        "Secret",
        "Service",
        "ServiceAccount",
    ],
    "admissionregistration.k8s.io": [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ],
    "apiextensions.k8s.io": ["CustomResourceDefinition"],
    "apiregistration.k8s.io": ["APIService"],
    "apps": ["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"],
    "authentication.k8s.io": ["SelfSubjectReview", "TokenReview"],
    "authorization.k8s.io": [
        "LocalSubjectAccessReview",
        "SelfSubjectAccessReview",
        "SelfSubjectRulesReview",
        "SubjectAccessReview",
    ],
    "autoscaling": ["HorizontalPodAutoscaler", "Scale"],
    "batch": ["CronJob", "Job"],
    "coordination.k8s.io": ["Lease"],
    "discovery.k8s.io": ["EndpointSlice"],
    "events.k8s.io": ["Event"],
    "networking.k8s.io": ["Ingress", "IngressClass", "NetworkPolicy"],
    "node.k8s.io": ["RuntimeClass"],
    "policy": ["Eviction", "PodDisruptionBudget"],
    "rbac.authorization.k8s.io": ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    "scheduling.k8s.io": ["PriorityClass"],
    "storage.k8s.io": ["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"],
}
"""By group, the kinds that every Kubernetes API server has, as far as anybody here meets them."""

_OWN = {(group, kind) for group, kinds in OWN.items() for kind in kinds}


def word(group: str, kind: str) -> str:
    """What a kind is known by: `Pod`, `Deployment`, `Job.batch.volcano.sh`."""
    return kind if (group, kind) in _OWN else f"{kind}.{group}"


def own(kind: str) -> bool:
    """Is this the word for a kind of Kubernetes itself?"""
    return "." not in kind


@dataclass(frozen=True, slots=True)
class Kind:
    """A sort of object, and how it is served."""

    group: str
    version: str
    name: str
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    generation: bool = True
    """Does metadata.generation count the changes of its spec?"""
    storage: str = ""
    """Where its objects are kept, where that is not under its own name."""
    definition: Body | None = None
    """The CustomResourceDefinition it comes from."""

    @property
    def api_version(self) -> str:
        """`v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def word(self) -> str:
        """The word it is known by: `Pod`, `Job.batch.volcano.sh`."""
        return word(self.group, self.name)

    @property
    def resource(self) -> str:
        """`pods`, `deployments.apps`: as messages call it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def kept_as(self) -> str:
        """The storage its objects are in."""
        return self.storage or self.resource

    @property
    def singular(self) -> str:
        """`pod`, `deployment`."""
        if self.definition is not None:
            names = self.definition["spec"]["names"]
            return str(names.get("singular") or self.name.lower())
        return self.name.lower()

    @property
    def list_name(self) -> str:
        """`PodList`."""
        if self.definition is not None:
            return str(self.definition["spec"]["names"].get("listKind") or f"{self.name}List")
        return f"{self.name}List"

    @property
    def has_status(self) -> bool:
        """Is its status written apart?"""
        return "status" in self.subresources

    @property
    def schema(self) -> dict[str, Any] | None:
        """The schema of its definition, for this version."""
        found = self.served
        return None if found is None else (found.get("schema") or {}).get("openAPIV3Schema")

    @property
    def columns(self) -> list[Body] | None:
        """The printer columns of its definition, for this version."""
        found = self.served
        return None if found is None else list(found.get("additionalPrinterColumns") or [])

    @property
    def served(self) -> Body | None:
        """What its definition says of this version."""
        if self.definition is None:
            return None
        versions: list[Body] = self.definition["spec"]["versions"]
        return next((each for each in versions if each["name"] == self.version), None)


def of_definition(definition: Body) -> list[Kind]:
    """The kinds that a CustomResourceDefinition brings: one a served version."""
    spec = definition["spec"]
    names = spec["names"]
    return [
        Kind(
            group=spec["group"],
            version=version["name"],
            name=names["kind"],
            plural=names["plural"],
            namespaced=spec["scope"] == "Namespaced",
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=tuple(version.get("subresources") or ()),
            definition=definition,
        )
        for version in spec["versions"]
        if version.get("served", True)
    ]
