"""The storage of a simulated cluster: volumes are bound and provisioned at once.

It plays Kubernetes' volume controller and the provisioners of all classes. A claim whose class
waits for its first pod gets the volume that was chosen when that pod was placed. A claim of another
class that says it is Pending is one that a cluster has not bound: it stays so until it is written
anew. Volumes stay when pods end; when their claim is deleted they go, or are Released, as their
reclaim policy says.
"""

from collections.abc import Iterator
from copy import deepcopy

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.storage import volumes
from aliquot.dialects.core.storage.objects import ClaimWire, StorageClassWire, VolumeWire
from aliquot.engine import Bind, PersistentVolume, StorageClass, VolumeClaim, fits, offers
from aliquot.json import Body
from aliquot.simulation.world import World

_CLAIM, _VOLUME, _CLASS = "PersistentVolumeClaim", "PersistentVolume", "StorageClass"
_PLACE = "storage"
"""What errors name in place of a file, for objects that are made here."""


class Storage:
    """Binds claims and volumes in the objects of the world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._objects = world.mirror.store.objects

    def follow(self) -> None:
        """Bind and provision what can be by now, if something has changed."""
        if not self._world.storage_changed:
            return
        for manifest in self._of_kind(_VOLUME):
            self._release(manifest)
        for manifest in self._of_kind(_CLAIM):
            self._bind_at_once(self._with_class(manifest))
        self._world.storage_changed = False

    def bind(self, decision: Bind) -> None:
        """Give the claims of a pod that starts the volumes that were chosen for them."""
        for binding in decision.volumes:
            namespace, _, name = binding.claim.partition("/")
            manifest = self._objects.get((_CLAIM, namespace, name))
            if manifest is None or volumes.claim(manifest).bound:
                continue
            if binding.volume is None:
                self._provision(manifest, decision.node)
            elif (found := self._objects.get((_VOLUME, "", binding.volume))) is not None:
                self._join(found, manifest)

    def _of_kind(self, kind: str) -> list[Manifest]:
        return [each for each in self._objects.values() if each.kind == kind]

    def _release(self, manifest: Manifest) -> None:
        """Let go of a volume that was bound to a claim which is gone."""
        content = manifest.content
        assert isinstance(content, VolumeWire)
        namespace, _, name = volumes.volume(manifest).claim.partition("/")
        phase = content.status.phase if content.status is not None else None
        if phase != "Bound" or (_CLAIM, namespace, name) in self._objects:
            return
        if manifest.body["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self._world.mirror.store.remove(manifest.key)
            self._world.mirror.send_removal(manifest)
            return
        body = deepcopy(manifest.body)
        body["status"] = {**(body.get("status") or {}), "phase": "Released"}
        self._world.put_storage([body], manifest.place)

    def _with_class(self, manifest: Manifest) -> Manifest:
        """A claim with the default class, if it names none and has no volume."""
        content = manifest.content
        assert isinstance(content, ClaimWire)
        spec, claim = manifest.body.get("spec") or {}, volumes.claim(manifest)
        if claim.storage_class or claim.volume or spec.get("storageClassName") is not None:
            return manifest
        body = deepcopy(manifest.body)
        body["spec"]["storageClassName"] = self._default_class()
        self._world.put_storage([body], manifest.place)
        return self._objects[manifest.key]

    def _default_class(self) -> str:
        """The default class: of several the newest, then the first by name."""
        marked = [each for each in self._of_kind(_CLASS) if volumes.is_default(each)]
        if not marked:
            if (_CLASS, "", "standard") not in self._objects:
                self._world.put_storage([deepcopy(volumes.STANDARD_CLASS)], _PLACE)
            return "standard"
        newest = max(each.metadata.creation_timestamp or "" for each in marked)
        return min(e.name for e in marked if (e.metadata.creation_timestamp or "") == newest)

    def _bind_at_once(self, manifest: Manifest) -> None:
        """Bind a claim that does not wait for a pod, or for which a volume is kept."""
        claim = volumes.claim(manifest)
        if claim.bound or claim.deleted:
            return
        found = self._class_of(claim)
        waits = found is not None and found.waits and claim.selected_node is None
        if self._is_left_pending(manifest, found is not None and found.waits):
            return
        volume = self._volume_for(claim, only_kept=waits)
        if volume is not None:
            self._join(volume, manifest)
        elif found is not None and found.provisions and not waits and not claim.volume:
            self._provision(manifest, claim.selected_node)

    def _is_left_pending(self, manifest: Manifest, waits: bool) -> bool:
        """Did a cluster leave this claim unbound, although it need not wait for a pod?"""
        content = manifest.content
        assert isinstance(content, ClaimWire)
        phase = content.status.phase if content.status is not None else None
        return phase == "Pending" and not waits

    def _class_of(self, claim: VolumeClaim) -> StorageClass | None:
        manifest = self._objects.get((_CLASS, "", claim.storage_class))
        return None if manifest is None else volumes.storage_class(manifest)

    def _volume_for(self, claim: VolumeClaim, only_kept: bool) -> Manifest | None:
        """The volume that is kept for a claim, or that it names; else the smallest that fits."""
        known = [(volumes.volume(each), each) for each in self._of_kind(_VOLUME)]
        kept = [pair for pair in known if pair[0].claim == claim.path and fits(pair[0], claim)]
        free = [pair for pair in known if _is_free(pair[0]) and offers(pair[0], claim)]
        if claim.volume:
            kept = [pair for pair in (*kept, *free) if pair[0].name == claim.volume]
        usable = kept if kept or only_kept or claim.volume else free
        best = min(usable, key=lambda pair: (pair[0].size, pair[0].name), default=None)
        return None if best is None else best[1]

    def _join(self, volume: Manifest, claim: Manifest) -> None:
        """Bind a volume and a claim to each other."""
        of_volume, of_claim = deepcopy(volume.body), deepcopy(claim.body)
        of_volume["spec"]["claimRef"] = {
            "apiVersion": "v1",
            "kind": _CLAIM,
            "namespace": claim.namespace,
            "name": claim.name,
            **({"uid": claim.metadata.uid} if claim.metadata.uid else {}),
        }
        of_claim["spec"]["volumeName"] = volume.name
        metadata = of_claim["metadata"]
        completed = {volumes.BIND_COMPLETED: "yes"}
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **completed}
        for body in (of_volume, of_claim):
            body["status"] = {**(body.get("status") or {}), "phase": "Bound"}
        self._world.put_storage([of_volume, of_claim], claim.place)

    def _provision(self, claim: Manifest, node: str | None) -> None:
        """Make a volume for a claim, near this node if one is given."""
        spec, name = claim.body["spec"], f"pvc-{claim.namespace}-{claim.name}"
        storage_class = self._objects[_CLASS, "", volumes.claim(claim).storage_class]
        content = storage_class.content
        assert isinstance(content, StorageClassWire)
        size = ((spec.get("resources") or {}).get("requests") or {}).get("storage", "0")
        made: Body = {
            "capacity": {"storage": size},
            "accessModes": list(spec.get("accessModes") or ()),
            "volumeMode": spec.get("volumeMode") or "Filesystem",
            "storageClassName": storage_class.name,
            "persistentVolumeReclaimPolicy": storage_class.body.get("reclaimPolicy") or "Delete",
            "csi": {"driver": content.provisioner, "volumeHandle": name},
        }
        if spec.get("volumeAttributesClassName"):
            made["volumeAttributesClassName"] = spec["volumeAttributesClassName"]
        labels = list(self._topology(storage_class, content.provisioner, node))
        if labels:
            terms = [{"matchExpressions": labels}]
            made["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
        body = {"apiVersion": "v1", "kind": _VOLUME, "metadata": {"name": name}, "spec": made}
        self._world.put_storage([body], claim.place)
        self._join(self._objects[_VOLUME, "", name], claim)

    def _topology(
        self, storage_class: Manifest, provisioner: str, node: str | None
    ) -> Iterator[Body]:
        """Where a new volume can be used: like the node, in the labels that its driver goes by."""
        allowed = [
            each
            for term in storage_class.body.get("allowedTopologies") or ()
            for each in term.get("matchLabelExpressions") or ()
        ]
        if node is None:
            first = (storage_class.body.get("allowedTopologies") or [{}])[0]
            for each in first.get("matchLabelExpressions") or ():
                yield {"key": each["key"], "operator": "In", "values": list(each["values"])}
            return
        drivers = self._objects.get(("CSINode", "", node))
        written = (drivers.body.get("spec") or {}).get("drivers") if drivers is not None else None
        of_driver = [each for each in written or () if each.get("name") == provisioner]
        keys = [key for each in of_driver for key in each.get("topologyKeys") or ()]
        found = self._objects.get(("Node", "", node))
        labels = (found.metadata.labels or {}) if found is not None else {}
        for key in dict.fromkeys(keys or [each["key"] for each in allowed]):
            if key in labels:
                yield {"key": key, "operator": "In", "values": [str(labels[key])]}


def _is_free(volume: PersistentVolume) -> bool:
    return volume.available and not volume.claim
