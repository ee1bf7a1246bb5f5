"""Objects to send: as small as the API takes them, the rest given by the test that cares."""

from collections.abc import Callable
from typing import Any

from aliquot.json import Body
from tests.build import manifests
from tests.build.manifests import container

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
    where = name if kind in _CLUSTER else f"{namespace}/{name}"
    return manifests.resource(_PATHS[kind][0], kind, where, **fields)


def config_map(namespace: str, name: str, **fields: Any) -> Body:
    return thing("ConfigMap", namespace, name, **{"data": {"key": "value"}, **fields})


def pod(namespace: str, name: str, **more: Any) -> Body:
    """A pod of one container with these `resources`, if any."""
    one = container(**{word: more.pop(word) for word in ("resources",) if word in more})
    return manifests.pod(f"{namespace}/{name}", **{"containers": [one], **more})


def deployment(namespace: str, name: str, kind: str = "Deployment", **more: Any) -> Body:
    """A Deployment, or another controller of pods, of two replicas."""
    return {**manifests.deployment(f"{namespace}/{name}", replicas=2, **more), "kind": kind}


def job(namespace: str, name: str) -> Body:
    return manifests.job(f"{namespace}/{name}")


def node(name: str, cpu: str = "8", **more: Any) -> Body:
    """A node that is ready; `labels` are added to its own."""
    body = {**manifests.ready_node(name, cpu=cpu, memory="32Gi"), "spec": {}}
    body["metadata"]["labels"] |= more.pop("labels", {})
    return {**body, **more}


def resource_quota(namespace: str, name: str, **hard: str) -> Body:
    return manifests.resource_quota(f"{namespace}/{name}", **hard)


def budget(namespace: str, name: str, **spec: Any) -> Body:
    """A disruption budget over the pods labelled `app: web`."""
    selector = {"matchLabels": {"app": "web"}}
    return manifests.budget(f"{namespace}/{name}", **{"selector": selector, **spec})


def lease(namespace: str, name: str, **spec: Any) -> Body:
    return thing("Lease", namespace, name, spec={"holderIdentity": "me", **spec})


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
