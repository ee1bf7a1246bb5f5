"""Objects of kinds without a part in scheduling, as small as the API takes them; their paths."""

from typing import Any

from aliquot.json import Body, fresh

RBAC = "rbac.authorization.k8s.io/v1"
_TEMPLATE = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "a", "image": "a:1"}]},
}
_SELECTOR = {"matchLabels": {"app": "a"}}
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
_JOB = {
    "spec": {
        "template": {
            "spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a:1"}]}
        }
    }
}
_TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}

_KINDS: dict[str, tuple[str, str, bool, Body]] = {
    "ClusterRole": (
        RBAC,
        "clusterroles",
        False,
        {"rules": [{"nonResourceURLs": ["/healthz"], "verbs": ["get"]}]},
    ),
    "ClusterRoleBinding": (
        RBAC,
        "clusterrolebindings",
        False,
        {"roleRef": {"kind": "ClusterRole", "name": "r"}},
    ),
    "ConfigMap": ("v1", "configmaps", True, {"data": {"a": "1"}}),
    "CronJob": (
        "batch/v1",
        "cronjobs",
        True,
        {"spec": {"schedule": "*/5 * * * *", "jobTemplate": _JOB}},
    ),
    "DaemonSet": (
        "apps/v1",
        "daemonsets",
        True,
        {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
    ),
    "EndpointSlice": (
        "discovery.k8s.io/v1",
        "endpointslices",
        True,
        {
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.1.2.3"]}],
            "ports": [{"port": 80}],
        },
    ),
    "Endpoints": (
        "v1",
        "endpoints",
        True,
        {"subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}]},
    ),
    "HorizontalPodAutoscaler": (
        "autoscaling/v2",
        "horizontalpodautoscalers",
        True,
        {"spec": {"maxReplicas": 3, "scaleTargetRef": _TARGET}},
    ),
    "Ingress": (
        "networking.k8s.io/v1",
        "ingresses",
        True,
        {
            "spec": {
                "rules": [
                    {"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": _BACKEND}]}}
                ]
            }
        },
    ),
    "IngressClass": (
        "networking.k8s.io/v1",
        "ingressclasses",
        False,
        {"spec": {"controller": "example.com/x"}},
    ),
    "LimitRange": (
        "v1",
        "limitranges",
        True,
        {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}},
    ),
    "NetworkPolicy": (
        "networking.k8s.io/v1",
        "networkpolicies",
        True,
        {"spec": {"podSelector": {}, "egress": [{"ports": [{"port": 53}]}]}},
    ),
    "PersistentVolume": (
        "v1",
        "persistentvolumes",
        False,
        {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "hostPath": {"path": "/x"},
            }
        },
    ),
    "PersistentVolumeClaim": ("v1", "persistentvolumeclaims", True, {"spec": _CLAIM}),
    "PodTemplate": ("v1", "podtemplates", True, {"template": _TEMPLATE}),
    "ReplicationController": (
        "v1",
        "replicationcontrollers",
        True,
        {"spec": {"replicas": 0, "template": _TEMPLATE}},
    ),
    "Role": (
        RBAC,
        "roles",
        True,
        {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    ),
    "RoleBinding": (
        RBAC,
        "rolebindings",
        True,
        {"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u"}]},
    ),
    "RuntimeClass": ("node.k8s.io/v1", "runtimeclasses", False, {"handler": "runc"}),
    "Service": ("v1", "services", True, {"spec": {"ports": [{"port": 80}]}}),
    "ServiceAccount": ("v1", "serviceaccounts", True, {}),
    "StatefulSet": (
        "apps/v1",
        "statefulsets",
        True,
        {
            "spec": {
                "replicas": 0,
                "selector": _SELECTOR,
                "serviceName": "x",
                "template": _TEMPLATE,
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": _CLAIM}],
            }
        },
    ),
    "StorageClass": (
        "storage.k8s.io/v1",
        "storageclasses",
        False,
        {"provisioner": "example.com/x"},
    ),
}
STORED = sorted(_KINDS)
"""The kinds."""


def stored(kind: str, namespace: str, name: str, changes: dict[str, Any] | None = None) -> Body:
    """An object of a kind, changed at paths such as `spec.ports.0.port`; None removes a field."""
    api_version, _, namespaced, fields = _KINDS[kind]
    metadata: Body = {"name": name, **({"namespace": namespace} if namespaced else {})}
    body: Body = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fresh(fields)}
    for path, value in (changes or {}).items():
        *above, last = path.split(".")
        holder: Any = body
        for word in above:
            holder = holder[int(word)] if word.isdecimal() else holder.setdefault(word, {})
        if value is None:
            holder.pop(last)
        else:
            holder[last] = value
    return body


def stored_path(body: Body, named: bool = True) -> str:
    """Where an object is, or where it is sent to."""
    api_version, plural, namespaced, _ = _KINDS[body["kind"]]
    root = "apis" if "/" in api_version else "api"
    inside = f"/namespaces/{body['metadata']['namespace']}" if namespaced else ""
    base = f"/{root}/{api_version}{inside}/{plural}"
    return f"{base}/{body['metadata']['name']}" if named else base
