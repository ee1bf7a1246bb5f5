"""Which kinds are Kubernetes' own, and one word for every kind.

A kind of Kubernetes is known by its plain name, `Pod`; a custom one by its name and group,
`Job.batch.volcano.sh`, as kubectl takes it. So two kinds of one name, such as the two Jobs, never
meet in a table of rules.
"""

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
