"""The ages of objects in virtual time, by the timestamps in their manifests.

Virtual time begins at 0, whatever the date: that is the moment at which the objects were read. A
creationTimestamp only orders. A pod that ran before has run since its start, up to that moment.
Where the clock that told the moment is behind that of the nodes, the last start is the moment.
"""

from collections.abc import Iterable

from aliquot.dialects.core import lifetimes, pods
from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import Metadata, PodWire
from aliquot.dialects.core.times import timestamp


class Ages:
    """When each object of the input was created, and when each pod began to run."""

    def __init__(self, manifests: Iterable[Manifest] = (), moment: int | None = None) -> None:
        """`moment` is when the objects were read, in nanoseconds since 1970, if that is known."""
        created: set[int] = set()
        started: list[int] = []
        for manifest in manifests:
            created.update(_known(_created(manifest, manifest.metadata)))
            if isinstance(manifest.content, PodWire):
                started += _known(lifetimes.start_time(manifest, pods.status(manifest)))
        self._ranks = {moment: rank for rank, moment in enumerate(sorted(created))}
        self._moment = max([*started, *([] if moment is None else [moment])], default=0)

    def of(self, manifest: Manifest, now: int, owner: Metadata | None = None) -> int:
        """The age of an object that arrives now: then, by the rank of its creationTimestamp.

        An object without one is the youngest; a pod without one has its `owner`'s.
        """
        moment = _created(manifest, manifest.metadata)
        if moment is None and owner is not None:
            moment = _created(manifest, owner)
        youngest = len(self._ranks)
        return now + (youngest if moment is None else self._ranks.get(moment, youngest))

    def start(self, manifest: Manifest, now: int) -> int:
        """When a pod that arrives running began to run; now, if it does not say."""
        moment = lifetimes.start_time(manifest, pods.status(manifest))
        return now if moment is None else now - max(self._moment - moment, 0)


def _created(manifest: Manifest, metadata: Metadata) -> int | None:
    return timestamp(metadata.creation_timestamp, manifest.place, "metadata.creationTimestamp")


def _known(moment: int | None) -> list[int]:
    return [] if moment is None else [moment]
