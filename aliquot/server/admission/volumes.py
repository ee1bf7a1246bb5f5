"""What admission adds to claims and volumes: the default class, and finalizers against loss.

As kube-apiserver's DefaultStorageClass and StorageObjectInUseProtection plugins do.
"""

from aliquot.json import Body
from aliquot.server.storage.store import Store
from aliquot.server.volumes.keys import CLAIM_FINALIZER, VOLUME_FINALIZER, default_class


def admit_claim(store: Store, claim: Body) -> None:
    """Give a new claim that names no class the default one, and its finalizer."""
    spec = claim.setdefault("spec", {})
    if spec.get("storageClassName") is None:
        name = default_class(store)
        if name is not None:
            spec["storageClassName"] = name
    _protect(claim, CLAIM_FINALIZER)


def admit_volume(volume: Body) -> None:
    """Give a new volume its finalizer."""
    _protect(volume, VOLUME_FINALIZER)


def _protect(body: Body, finalizer: str) -> None:
    present = body["metadata"].get("finalizers") or []
    if finalizer not in present:
        body["metadata"]["finalizers"] = [*present, finalizer]
