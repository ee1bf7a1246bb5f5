"""The annotations, labels and kinds by which claims and volumes are bound. Names only, and reading.

The controllers write the very annotations of Kubernetes' own: schedulers and provisioners wait for
them.
"""

from aliquot.dialects.core.storage.volumes import IS_DEFAULT
from aliquot.json import Body
from aliquot.server.storage.store import Store

CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"
CLASSES, CSI_NODES = "storageclasses.storage.k8s.io", "csinodes.storage.k8s.io"

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
PROVISIONERS = (
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/storage-provisioner",
)
"""On a claim: which provisioner is to make its volume, in both spellings."""
_DEFAULTS = (IS_DEFAULT, "storageclass.beta.kubernetes.io/is-default-class")
CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER = "kubernetes.io/pv-protection"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def annotations(body: Body) -> dict[str, str]:
    """The annotations of an object."""
    found: dict[str, str] = body["metadata"].get("annotations") or {}
    return found


def default_class(store: Store) -> str | None:
    """The default StorageClass: of several, the newest, then the first by name."""
    marked = []
    for entry in store.all(CLASSES):
        body = entry.read()
        if any(annotations(body).get(key) == "true" for key in _DEFAULTS):
            marked.append((body["metadata"].get("creationTimestamp") or "", entry.name))
    newest = max((created for created, _ in marked), default="")
    return min((name for created, name in marked if created == newest), default=None)


def class_of(body: Body) -> str:
    """The StorageClass that a claim or a volume names; empty: none."""
    return str(body["spec"].get("storageClassName") or "")


def refers_to(volume: Body, claim: Body) -> bool:
    """Is the volume bound to this claim, or kept for a claim of its name?"""
    reference, about = volume["spec"].get("claimRef") or {}, claim["metadata"]
    return (
        reference.get("namespace") == about["namespace"]
        and reference.get("name") == about["name"]
        and reference.get("uid") in (None, "", about["uid"])
    )
