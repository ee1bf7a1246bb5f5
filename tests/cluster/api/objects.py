"""Objects to send: as small as the API takes them, the rest given by the test that cares."""

from collections.abc import Callable
from typing import Any

from aliquot.json import Body

Make = Callable[[str, str], Body]
"""Makes an object of a namespace and a name."""

_PATHS = {
    "ConfigMap": ("v1", "configmaps"),
    "CustomResourceDefinition": ("apiextensions.k8s.io/v1", "customresourcedefinitions"),
    "Deployment": ("apps/v1", "deployments"),
    "Event": ("v1", "events"),
    "Gadget": ("suite.aliquot.dev/v1", "gadgets"),
    "Job": ("batch/v1", "jobs"),
    "Lease": ("coordination.k8s.io/v1", "leases"),
    "LimitRange": ("v1", "limitranges"),
    "Namespace": ("v1", "namespaces"),
    "Node": ("v1", "nodes"),
    "PersistentVolumeClaim": ("v1", "persistentvolumeclaims"),
    "Pod": ("v1", "pods"),
    "PodDisruptionBudget": ("policy/v1", "poddisruptionbudgets"),
    "PriorityClass": ("scheduling.k8s.io/v1", "priorityclasses"),
    "ReplicaSet": ("apps/v1", "replicasets"),
    "ResourceQuota": ("v1", "resourcequotas"),
    "Secret": ("v1", "secrets"),
    "Service": ("v1", "services"),
    "ServiceAccount": ("v1", "serviceaccounts"),
    "Widget": ("suite.aliquot.dev/v1", "widgets"),
}
_CLUSTER = {"CustomResourceDefinition", "Gadget", "Namespace", "Node", "PriorityClass"}


def path(kind: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Where objects of a kind are, or one of them."""
    version, plural = _PATHS[kind]
    parts = ["apis" if "/" in version else "api", version]
    if namespace:
        parts += ["namespaces", namespace]
    return "/" + "/".join([*parts, plural, *filter(None, [name, subresource])])


def path_of(body: Body, named: bool = True) -> str:
    """Where this object is, or where it is sent to."""
    group, _, _ = body["apiVersion"].rpartition("/")
    if (body["kind"], group) == ("Event", "events.k8s.io"):
        base = f"/apis/events.k8s.io/v1/namespaces/{body['metadata']['namespace']}/events"
        return f"{base}/{body['metadata']['name']}" if named else base
    meta = body["metadata"]
    return path(body["kind"], meta.get("namespace", ""), meta["name"] if named else "")


def thing(kind: str, namespace: str, name: str, **fields: Any) -> Body:
    """An object of any kind; `labels` and the like go to its metadata."""
    meta: Body = {"name": name}
    if kind not in _CLUSTER:
        meta["namespace"] = namespace
    for key in ("labels", "annotations", "finalizers", "ownerReferences"):
        if key in fields:
            meta[key] = fields.pop(key)
    return {"apiVersion": _PATHS[kind][0], "kind": kind, "metadata": meta, **fields}


def config_map(namespace: str, name: str, **fields: Any) -> Body:
    return thing("ConfigMap", namespace, name, **{"data": {"key": "value"}, **fields})


def container(name: str = "main", **fields: Any) -> Body:
    return {"name": name, "image": "image.invalid/main:1", **fields}


def pod(namespace: str, name: str, **fields: Any) -> Body:
    """A pod of one container; what is not metadata or `resources` goes to its spec."""
    one = container(**({"resources": fields.pop("resources")} if "resources" in fields else {}))
    meta = {k: fields.pop(k) for k in ("labels", "annotations", "finalizers") if k in fields}
    return thing("Pod", namespace, name, **meta, spec={"containers": [one], **fields})


def deployment(namespace: str, name: str, kind: str = "Deployment", **fields: Any) -> Body:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container()]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return thing(kind, namespace, name, spec=spec, **fields)


def job(namespace: str, name: str) -> Body:
    spec = {"restartPolicy": "Never", "containers": [container()]}
    return thing("Job", namespace, name, spec={"template": {"spec": spec}})


def node(name: str, cpu: str = "8", **fields: Any) -> Body:
    amounts = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
    return thing("Node", "", name, **{"spec": {}, "status": status, **fields})


def quota(namespace: str, name: str, **hard: str) -> Body:
    return thing("ResourceQuota", namespace, name, spec={"hard": hard})


def budget(namespace: str, name: str, **spec: Any) -> Body:
    selector = {"matchLabels": {"app": "web"}}
    return thing("PodDisruptionBudget", namespace, name, spec={"selector": selector, **spec})


def lease(namespace: str, name: str, **spec: Any) -> Body:
    return thing("Lease", namespace, name, spec={"holderIdentity": "me", **spec})


def priority_class(name: str, value: int, **fields: Any) -> Body:
    return thing("PriorityClass", "", name, value=value, **fields)


def binding(name: str, to: str, **meta: Any) -> Body:
    target = {"apiVersion": "v1", "kind": "Node", "name": to}
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **meta},
        "target": target,
    }


def eviction(namespace: str, name: str, **options: Any) -> Body:
    body: Body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
    }
    return {**body, "deleteOptions": options} if options else body


def delete_options(**fields: Any) -> Body:
    return {"apiVersion": "v1", "kind": "DeleteOptions", **fields}


def widget(namespace: str, name: str, **spec: Any) -> Body:
    """A custom resource of the suite's own."""
    return thing("Widget", namespace, name, spec={"size": 3, **spec})


def definition(plural: str, kind: str, scope: str = "Namespaced", **version: Any) -> Body:
    """A CustomResourceDefinition of one version."""
    open_ = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    one = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": open_}}
    spec = {
        "group": "suite.aliquot.dev",
        "scope": scope,
        "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
        "versions": [{**one, **version}],
    }
    return thing("CustomResourceDefinition", "", f"{plural}.suite.aliquot.dev", spec=spec)


_WIDGET_SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 100},
        "colour": {"type": "string", "enum": ["red", "green"], "default": "red"},
        "replicas": {"type": "integer", "default": 1},
        "port": {"x-kubernetes-int-or-string": True},
        "tags": {
            "type": "array",
            "maxItems": 3,
            "items": {"type": "string", "pattern": "^[a-z]+$"},
        },
        "amounts": {"type": "object", "additionalProperties": {"type": "string"}},
        "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "nested": {
            "type": "object",
            "properties": {"depth": {"type": "integer", "default": 7}, "flag": {"type": "boolean"}},
        },
    },
}

WIDGETS = definition(
    "widgets",
    "Widget",
    schema={
        "openAPIV3Schema": {
            "type": "object",
            "description": "A widget of the suite.",
            "required": ["spec"],
            "properties": {
                "spec": _WIDGET_SPEC,
                "status": {
                    "type": "object",
                    "properties": {"phase": {"type": "string"}, "replicas": {"type": "integer"}},
                },
            },
        }
    },
    subresources={
        "status": {},
        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
    },
    additionalPrinterColumns=[
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
        {"name": "Colour", "type": "string", "jsonPath": ".spec.colour", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ],
)
WIDGETS["spec"]["names"] |= {"shortNames": ["wd"], "categories": ["all"]}

GADGETS = definition("gadgets", "Gadget", scope="Cluster")
