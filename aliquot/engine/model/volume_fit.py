"""Does a volume fit a claim? As Kubernetes decides, in its scheduler and its volume controller."""

from aliquot.engine.model.selector import requirement_matches
from aliquot.engine.model.volumes import PersistentVolume, VolumeClaim


def fits(volume: PersistentVolume, claim: VolumeClaim) -> bool:
    """Is a volume large enough for a claim, and of its mode and attributes?

    That is enough for a volume that is kept for the claim.
    """
    return (
        volume.size >= claim.size
        and volume.mode == claim.mode
        and volume.attributes_class == claim.attributes_class
        and volume.storage_class == claim.storage_class
        and not volume.deleted
    )


def offers(volume: PersistentVolume, claim: VolumeClaim) -> bool:
    """Could the claim get this volume, if that is free?"""
    labels = dict(volume.labels)
    return (
        fits(volume, claim)
        and set(claim.access_modes) <= set(volume.access_modes)
        and all(requirement_matches(each, labels) for each in claim.selector)
    )
