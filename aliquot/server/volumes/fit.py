"""Which volume fits a claim: the smallest of those that have what it asks for. Pure.

As Kubernetes' PersistentVolume controller chooses: a volume that is kept for the claim comes before
all others, one that is not Available never.
"""

from collections.abc import Iterable

from aliquot.json import Body
from aliquot.server.admission.quota_usage import nanos
from aliquot.server.selectors.selectors import Labels
from aliquot.server.volumes.keys import class_of, refers_to


def best(claim: Body, volumes: Iterable[Body], only_kept: bool) -> Body | None:
    """The volume to bind to a claim; `only_kept`: of those that are kept for it."""
    known = list(volumes)
    kept = [each for each in known if refers_to(each, claim)]
    for each in sorted(kept, key=size):
        if misfit(claim, each) is None and "deletionTimestamp" not in each["metadata"]:
            return each
    if only_kept:
        return None
    return min((each for each in known if _is_free_for(claim, each)), key=size, default=None)


def misfit(claim: Body, volume: Body) -> str | None:
    """What the volume lacks of what the claim asks for; None if nothing."""
    asks, has = claim["spec"], volume["spec"]
    wanted = ((asks.get("resources") or {}).get("requests") or {}).get("storage", 0)
    if size(volume)[0] < nanos(wanted):
        return "it is too small"
    if class_of(volume) != class_of(claim):
        return "its StorageClass is another"
    if (has.get("volumeMode") or "Filesystem") != (asks.get("volumeMode") or "Filesystem"):
        return "its volumeMode is another"
    if not set(asks.get("accessModes") or ()) <= set(has.get("accessModes") or ()):
        return "it lacks an access mode"
    return None


def size(volume: Body) -> tuple[int, str]:
    """The order of volumes: the smallest first, then by name."""
    capacity = volume["spec"].get("capacity") or {}
    return nanos(capacity.get("storage", 0)), str(volume["metadata"]["name"])


def _is_free_for(claim: Body, volume: Body) -> bool:
    selector = Labels.of(claim["spec"].get("selector") or {})
    return (
        not volume["spec"].get("claimRef")
        and (volume.get("status") or {}).get("phase") == "Available"
        and "deletionTimestamp" not in volume["metadata"]
        and (selector is None or selector.match(volume["metadata"].get("labels")))
        and misfit(claim, volume) is None
    )
