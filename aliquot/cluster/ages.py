"""How old pods and groups are: the one that came first is older.

Of those that come together, the one with the older timestamp is; without one, it is the youngest.
"""

from collections.abc import Iterable

from aliquot.dialects.core.manifest import Manifest
from aliquot.dialects.core.objects import Metadata
from aliquot.dialects.core.times import timestamp


class Ages:
    """Ages by arrival; `timestamps` are all that any object ever carries."""

    def __init__(self, timestamps: Iterable[int] = ()) -> None:
        self._ranks = {moment: rank for rank, moment in enumerate(sorted(set(timestamps)))}

    def of(self, manifest: Manifest, now: int, owner: Metadata | None = None) -> int:
        """The age of what comes now; the first pods of an owner are as old as that."""
        written = manifest.metadata.creation_timestamp
        if written is None and owner is not None:
            written = owner.creation_timestamp
        moment = timestamp(written, manifest.place, "metadata.creationTimestamp")
        youngest = len(self._ranks)
        return now + (youngest if moment is None else self._ranks.get(moment, youngest))
