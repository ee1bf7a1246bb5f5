"""Storage as manifests: classes, claims, volumes of one node, pods that mount claims."""

from typing import Any

from aliquot.json import Body
from tests.build import manifests

NO_PROVISIONER = "kubernetes.io/no-provisioner"
HOST = "kubernetes.io/hostname"
_SIZE = {"storage": "1Gi"}


def storage_class(name: str, provisioner: str = NO_PROVISIONER, **more: Any) -> Body:
    """A class whose claims wait for their first pod."""
    more = {"volumeBindingMode": "WaitForFirstConsumer", **more}
    return manifests.resource(
        "storage.k8s.io/v1", "StorageClass", name, provisioner=provisioner, **more
    )


def claim_spec(storage_class: str = "local") -> Body:
    """What a claim asks for."""
    return {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": _SIZE},
        "storageClassName": storage_class,
    }


def claim(path: str, storage_class: str = "local") -> Body:
    """A claim."""
    spec = claim_spec(storage_class)
    return manifests.resource("v1", "PersistentVolumeClaim", path, spec=spec)


def volume(name: str, node: str, storage_class: str = "local", **spec: Any) -> Body:
    """A volume on a disk of this node."""
    terms = [{"matchExpressions": [{"key": HOST, "operator": "In", "values": [node]}]}]
    spec = {
        **{"accessModes": ["ReadWriteOnce"], "capacity": _SIZE},
        **{"storageClassName": storage_class, "local": {"path": "/disk"}},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        **spec,
    }
    return manifests.resource("v1", "PersistentVolume", name, spec=spec)


def mounted(*claims: str) -> list[Body]:
    """The volumes of a pod that mounts these claims of its namespace."""
    return [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
