"""Warnings about volumes that the input never has: claims, storage classes, volumes large enough.

They look at all objects that the input ever brings, and only where there are nodes, so that the
input is a cluster: a single manifest may be meant for one that has the rest.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from aliquot.dialects.core.findings import Finding
from aliquot.dialects.core.manifest import Key, Manifest
from aliquot.dialects.core.objects import PodSpec
from aliquot.dialects.core.pod_templates import template_views
from aliquot.dialects.core.storage import volumes
from aliquot.engine import PersistentVolume, StorageClass, VolumeClaim, quantity
from aliquot.validation.history import State

_KINDS = {*volumes.KINDS, "Node"}


@dataclass(slots=True)
class UnmetVolumes:
    """The valid objects that the input ever brings, as far as these rules read them."""

    _objects: dict[Key, Manifest] = field(default_factory=dict)

    def add_state(self, state: State) -> None:
        """Take the objects of a state's change."""
        for each in state.applied:
            if each.kind in _KINDS or template_views(each):
                self._objects[each.key] = each

    def findings(self) -> Iterator[Finding]:
        """All warnings about the objects so far."""
        found = self._objects.values()
        if not any(each.kind == "Node" for each in found):
            return
        known = [each for each in map(volumes.storage_object, found) if each is not None]
        classes = {each.name: each for each in known if isinstance(each, StorageClass)}
        offered = [each for each in known if isinstance(each, PersistentVolume)]
        for manifest in found:
            if manifest.kind == "PersistentVolumeClaim":
                yield from _claim_is_met(manifest, classes, offered)
            for view in template_views(manifest):
                yield from self._claims_exist(manifest, view.spec, view.spec_field)

    def _claims_exist(
        self, manifest: Manifest, spec: PodSpec | None, where: str
    ) -> Iterator[Finding]:
        """Warn of a claim that is not there: the pods that name it wait."""
        for index, each in enumerate((spec or PodSpec()).volumes or ()):
            source = each.persistent_volume_claim
            if source is None:
                continue
            key = ("PersistentVolumeClaim", manifest.namespace, source.claim_name)
            if key not in self._objects:
                at = f"{where}.volumes[{index}].persistentVolumeClaim.claimName"
                problem = f"there is no claim {manifest.namespace}/{source.claim_name}"
                yield manifest.finding("warning", at, f"{problem}: what mounts it waits")


def _claim_is_met(
    manifest: Manifest, classes: dict[str, StorageClass], offered: Iterable[PersistentVolume]
) -> Iterator[Finding]:
    """Warn of a claim that nothing can meet: no class, or no volume that is large enough."""
    claim = volumes.claim(manifest)
    own = [each for each in offered if each.storage_class == claim.storage_class]
    if claim.bound or claim.volume or any(each.size >= claim.size for each in own):
        return
    found = classes.get(claim.storage_class)
    if claim.storage_class and found is None:
        problem = f"there is no storage class {claim.storage_class}: the claim gets no volume"
        yield manifest.finding("warning", "spec.storageClassName", problem)
    elif found is not None and not found.provisions:
        yield _too_large(manifest, claim, own)


def _too_large(manifest: Manifest, claim: VolumeClaim, own: list[PersistentVolume]) -> Finding:
    asked = quantity.text("storage", claim.size)
    most = quantity.text("storage", max((each.size for each in own), default=0))
    problem = f"asks for {asked}; the largest volume of class {claim.storage_class} has {most}"
    if not own:
        problem = f"class {claim.storage_class} has no volumes, and provisions none"
    return manifest.finding("warning", "spec.resources.requests[storage]", problem)
