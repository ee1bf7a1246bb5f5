"""The defaults of kinds without a part in scheduling, as kube-apiserver fills them in."""

from collections.abc import Callable

from aliquot.json import Body
from aliquot.server.rules.pod_defaults import part, set_missing

_RBAC = "rbac.authorization.k8s.io"
_STICKY_SECONDS = 10800
"""The default of sessionAffinityConfig in Kubernetes: three hours."""
_EXPOSED = ("NodePort", "LoadBalancer")
_CPU_PERCENT = 80
"""What a HorizontalPodAutoscaler without metrics aims at in Kubernetes."""


def _service(body: Body) -> None:
    spec = part(body, "spec")
    set_missing(spec, type="ClusterIP", sessionAffinity="None")
    if spec["sessionAffinity"] == "ClientIP":
        set_missing(
            part(part(spec, "sessionAffinityConfig"), "clientIP"), timeoutSeconds=_STICKY_SECONDS
        )
    if spec["type"] in ("ClusterIP", *_EXPOSED):
        set_missing(spec, internalTrafficPolicy="Cluster")
    if spec["type"] in _EXPOSED:
        set_missing(spec, externalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer":
        set_missing(spec, allocateLoadBalancerNodePorts=True)
    for port in spec.get("ports", ()):
        set_missing(port, protocol="TCP")
        port["targetPort"] = port.get("targetPort") or port.get("port", 0)


def _binding(body: Body) -> None:
    set_missing(part(body, "roleRef"), apiGroup=_RBAC)
    for subject in body.get("subjects", ()):
        if subject.get("kind") in ("User", "Group"):
            set_missing(subject, apiGroup=_RBAC)


def _volume(body: Body) -> None:
    spec = part(body, "spec")
    set_missing(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    if "hostPath" in spec:
        part(spec, "hostPath").setdefault("type", "")
    set_missing(part(body, "status"), phase="Pending")


def _claim(body: Body) -> None:
    set_missing(part(body, "spec"), volumeMode="Filesystem")
    set_missing(part(body, "status"), phase="Pending")


def _storage_class(body: Body) -> None:
    set_missing(body, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _network_policy(body: Body) -> None:
    spec = part(body, "spec")
    part(spec, "podSelector")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]
    for rule in (*spec.get("ingress", ()), *spec.get("egress", ())):
        for port in rule.get("ports", ()):
            set_missing(port, protocol="TCP")


def _ingress_class(body: Body) -> None:
    parameters = part(body, "spec").get("parameters")
    if parameters:
        set_missing(parameters, scope="Cluster")


def _autoscaler(body: Body) -> None:
    spec = part(body, "spec")
    target = {"type": "Utilization", "averageUtilization": _CPU_PERCENT}
    set_missing(spec, minReplicas=1)
    if not spec.get("metrics"):
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _endpoints(body: Body) -> None:
    for subset in body.get("subsets", ()):
        for port in subset.get("ports", ()):
            set_missing(port, protocol="TCP")


def _endpoint_slice(body: Body) -> None:
    for port in body.get("ports", ()):
        set_missing(port, name="", protocol="TCP")


def _csi_driver(body: Body) -> None:
    set_missing(
        part(body, "spec"),
        attachRequired=True,
        podInfoOnMount=False,
        storageCapacity=False,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        volumeLifecycleModes=["Persistent"],
        requiresRepublish=False,
        seLinuxMount=False,
    )


def _limit_range(body: Body) -> None:
    """A container's default is its default request, too, as far as none is given."""
    for item in part(body, "spec").get("limits", ()):
        if item.get("type") == "Container" and item.get("default"):
            item["defaultRequest"] = {**item["default"], **(item.get("defaultRequest") or {})}


FILL_STORED: dict[str, Callable[[Body], None]] = {
    "CSIDriver": _csi_driver,
    "ClusterRoleBinding": _binding,
    "EndpointSlice": _endpoint_slice,
    "Endpoints": _endpoints,
    "HorizontalPodAutoscaler": _autoscaler,
    "IngressClass": _ingress_class,
    "LimitRange": _limit_range,
    "NetworkPolicy": _network_policy,
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _claim,
    "RoleBinding": _binding,
    "Service": _service,
    "StorageClass": _storage_class,
}
