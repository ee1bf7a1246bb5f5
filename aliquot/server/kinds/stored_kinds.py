"""The built-in kinds without a part in scheduling: they are stored, checked and shown.

Manifests of users bring them along: Aliquot's own, a chart's, a GitOps repository's. Workloads that
follow nodes, ordinals or a clock are here as well; `controllers` make their pods.
"""

from aliquot.server.kinds.kind import Kind

_ALL = ("all",)
_STATUS = ("status",)
_SCALED = ("status", "scale")
_RBAC = "rbac.authorization.k8s.io"
_NETWORKING = "networking.k8s.io"
_STORAGE = "storage.k8s.io"


def _kind(
    group: str,
    name: str,
    plural: str,
    short: tuple[str, ...] = (),
    categories: tuple[str, ...] = (),
    subresources: tuple[str, ...] = (),
    namespaced: bool = True,
    generation: bool = False,
) -> Kind:
    version = "v2" if group == "autoscaling" else "v1"
    return Kind(
        *(group, version, name, plural, namespaced),
        *(short, categories, subresources, generation),
    )


STORED_KINDS: tuple[Kind, ...] = (
    _kind("", "Endpoints", "endpoints", ("ep",)),
    _kind("", "LimitRange", "limitranges", ("limits",)),
    _kind(
        *("", "PersistentVolume", "persistentvolumes", ("pv",)),
        subresources=_STATUS,
        namespaced=False,
    ),
    _kind("", "PersistentVolumeClaim", "persistentvolumeclaims", ("pvc",), subresources=_STATUS),
    _kind("", "PodTemplate", "podtemplates", generation=True),
    _kind(
        *("", "ReplicationController", "replicationcontrollers", ("rc",), _ALL, _SCALED),
        generation=True,
    ),
    _kind("", "Service", "services", ("svc",), _ALL, _STATUS),
    _kind("apps", "ControllerRevision", "controllerrevisions"),
    _kind("apps", "DaemonSet", "daemonsets", ("ds",), _ALL, _STATUS, generation=True),
    _kind("apps", "StatefulSet", "statefulsets", ("sts",), _ALL, _SCALED, generation=True),
    _kind(
        *("autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers", ("hpa",)),
        *(_ALL, _STATUS),
    ),
    _kind("batch", "CronJob", "cronjobs", ("cj",), _ALL, _STATUS, generation=True),
    _kind("discovery.k8s.io", "EndpointSlice", "endpointslices", generation=True),
    _kind(_NETWORKING, "Ingress", "ingresses", ("ing",), subresources=_STATUS, generation=True),
    _kind(_NETWORKING, "IngressClass", "ingressclasses", namespaced=False, generation=True),
    _kind(_NETWORKING, "NetworkPolicy", "networkpolicies", ("netpol",), generation=True),
    _kind("node.k8s.io", "RuntimeClass", "runtimeclasses", namespaced=False),
    _kind(_RBAC, "ClusterRole", "clusterroles", namespaced=False),
    _kind(_RBAC, "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    _kind(_RBAC, "Role", "roles"),
    _kind(_RBAC, "RoleBinding", "rolebindings"),
    _kind(_STORAGE, "CSIDriver", "csidrivers", namespaced=False),
    _kind(_STORAGE, "CSINode", "csinodes", namespaced=False),
    _kind(_STORAGE, "CSIStorageCapacity", "csistoragecapacities"),
    _kind(_STORAGE, "StorageClass", "storageclasses", ("sc",), namespaced=False),
    _kind(
        *(_STORAGE, "VolumeAttachment", "volumeattachments"),
        subresources=_STATUS,
        namespaced=False,
    ),
)
