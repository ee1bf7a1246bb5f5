"""Kinds: their names, their paths, and where their objects are stored.

A path names a kind by group, version and plural. Rules and tables look a kind up by its unique
name: the plain name for a kind of Kubernetes, `Pod`; name and group for a custom one,
`Job.batch.volcano.sh`, as kubectl takes it. So the two kinds called Job never share a rule.

Two kinds may share one storage, as the Events of the core group and of events.k8s.io do: objects
are stored in the form of one of them and converted for the other (`conversion`).
"""

from dataclasses import dataclass
from typing import Any

from aliquot.json import Body

KUBERNETES_KINDS = {
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
    "storage.k8s.io": [
        "CSIDriver",
        "CSINode",
        "CSIStorageCapacity",
        "StorageClass",
        "VolumeAttachment",
    ],
}
"""By group, the kinds of Kubernetes itself, as far as manifests, rules or clients here use them."""

_KUBERNETES_KINDS = {(group, kind) for group, kinds in KUBERNETES_KINDS.items() for kind in kinds}


def unique_name(group: str, kind: str) -> str:
    """`Pod`, `Deployment`, `Job.batch.volcano.sh`."""
    return kind if (group, kind) in _KUBERNETES_KINDS else f"{kind}.{group}"


def is_kubernetes_kind(kind: str) -> bool:
    """Is this the unique name of a kind of Kubernetes itself?"""
    return "." not in kind


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object, and how it is served."""

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
    shared_storage: str = ""
    """The storage of another kind, if its objects are stored there: Events of events.k8s.io."""
    definition: Body | None = None
    """The CustomResourceDefinition it comes from."""
    verbs: tuple[str, ...] = ()
    """The only verbs of a kind that is answered from other objects; a stored kind has all."""

    @property
    def api_version(self) -> str:
        """`v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def unique_name(self) -> str:
        """`Pod`, `Job.batch.volcano.sh`."""
        return unique_name(self.group, self.name)

    @property
    def resource(self) -> str:
        """`pods`, `deployments.apps`: as messages write it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def storage(self) -> str:
        """The storage that holds its objects."""
        return self.shared_storage or self.resource

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
        """Is its status a subresource?"""
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
    """The kinds of a CustomResourceDefinition: one for each version that is served."""
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
