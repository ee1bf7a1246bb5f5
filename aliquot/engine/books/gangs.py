"""The registry of gangs and of the pods that name them.

What makes up the core of a gang is in `model.gang`; its claims are made in `gang_claims`, for the
gangs that are in the change log.
"""

from aliquot.engine.books.changes import Changes
from aliquot.engine.model.gang import Gang
from aliquot.engine.model.pod import Pod


class Gangs:
    """The gangs that exist, and the pods that name a gang."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self.known: dict[str, Gang] = {}
        self.members: dict[str, dict[str, None]] = {}
        """The uids of the pods that name each gang, whether or not it exists yet."""
        self.requesting: dict[str, Gang] = {}
        """The gangs that request more than their existing pods, by `booking_name`."""

    def __bool__(self) -> bool:
        return bool(self.known)

    def of(self, pod: Pod) -> Gang | None:
        """The gang of a pod, if it exists."""
        return None if pod.gang is None else self.known.get(pod.gang)

    def set(self, gang: Gang) -> None:
        """Add a gang, or replace it."""
        self.known[gang.name] = gang
        self._changes.gangs.append(gang.name)

    def remove(self, name: str) -> str:
        """Remove a gang; returns its `booking_name`."""
        gang = self.known.pop(name)
        self.requesting.pop(booking_name(gang), None)
        return booking_name(gang)

    def join(self, pod: Pod) -> None:
        """Add a pod that may name a gang."""
        if pod.gang is not None:
            self.members.setdefault(pod.gang, {})[pod.uid] = None
            self.note_change(pod)

    def leave(self, pod: Pod) -> None:
        """Remove a pod; it must be as it was when it joined."""
        if pod.gang is not None:
            left = self.members[pod.gang]
            left.pop(pod.uid, None)
            if not left:
                del self.members[pod.gang]
            self.note_change(pod)

    def requests(self, gang: Gang) -> bool:
        """Does the gang request more than its existing pods?"""
        return booking_name(gang) in self.requesting

    def note_change(self, pod: Pod) -> None:
        """A pod has changed: the claims of its gang must be made anew."""
        if pod.gang in self.known:
            self._changes.gangs.append(pod.gang)


def booking_name(gang: Gang) -> str:
    """The key in the ledger of what a gang requests beyond its existing pods."""
    return f"<gang {gang.name}>"
