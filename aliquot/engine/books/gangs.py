"""Gangs: pods that start together. Who is of which gang, and which of them make up its core.

The core of a gang is as many pods as it needs: the most important ones, first those of each task
that it cannot do without. While they are not all there, or do not all run, they claim as one. What
a gang has beyond its core is its surplus: these pods start one by one once the core runs, and are
the first to go.
"""

from aliquot.engine.model.gang import Gang
from aliquot.engine.model.pod import Pod


class Gangs:
    """The gangs that are there, and the pods that name them."""

    def __init__(self) -> None:
        self.known: dict[str, Gang] = {}
        self.members: dict[str, dict[str, None]] = {}
        """The uids of the pods of every gang, there or not."""
        self.dirty: dict[str, None] = {}
        """The gangs whose waiting pods are to be mustered anew."""
        self.requesting: dict[str, Gang] = {}
        """The gangs that ask for more than their pods do, by the name they are booked under."""

    def __bool__(self) -> bool:
        return bool(self.known)

    def of(self, pod: Pod) -> Gang | None:
        """The gang of a pod, if it is there."""
        return None if pod.gang is None else self.known.get(pod.gang)

    def set(self, gang: Gang) -> None:
        """A gang is there, like this."""
        self.known[gang.name] = gang
        self.dirty[gang.name] = None
        if booking_name(gang) in self.requesting:
            self.requesting[booking_name(gang)] = gang

    def remove(self, name: str) -> str:
        """A gang is no longer there; returns what it was booked under, if it was."""
        gang = self.known.pop(name)
        self.dirty.pop(name, None)
        self.requesting.pop(booking_name(gang), None)
        return booking_name(gang)

    def join(self, pod: Pod) -> None:
        """A pod is there."""
        if pod.gang is not None:
            self.members.setdefault(pod.gang, {})[pod.uid] = None
            self.mark_dirty(pod)

    def leave(self, pod: Pod) -> None:
        """A pod, like this when it joined, is no longer there."""
        if pod.gang is not None:
            left = self.members[pod.gang]
            left.pop(pod.uid, None)
            if not left:
                del self.members[pod.gang]
            self.mark_dirty(pod)

    def mark_dirty(self, pod: Pod) -> None:
        """Something has become of a pod: its gang may need others, or no more."""
        if pod.gang in self.known:
            self.dirty[pod.gang] = None


def booking_name(gang: Gang) -> str:
    """The name under which the books have what a gang asks for beyond its pods."""
    return f"<gang {gang.name}>"
