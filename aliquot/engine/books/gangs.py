"""The registry of gangs and of the pods that name them.

What makes up the core of a gang is in `model.gang`; its claims are made in `gang_claims`, for the
gangs that are in the change log.
"""

from collections.abc import Iterable

from aliquot.engine.books.changes import Changes
from aliquot.engine.model.gang import Gang, Topology
from aliquot.engine.model.pod import Pod


class Gangs:
    """The gangs that exist, and the pods that name a gang."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self.known: dict[str, Gang] = {}
        self.members: dict[str, dict[str, None]] = {}
        """The uids of the pods that name each gang, whether or not it exists yet."""
        self._named_by: dict[str, dict[str, None]] = {}
        """The gangs that say they start together with a gang, by its name."""
        self.topologies: dict[str, Topology] = {}
        """How near to each other the pods of a gang run, where that matters, by its name."""
        self.requesting: dict[str, Gang] = {}
        """The gangs that request more than their existing pods, by `booking_name`."""

    def __bool__(self) -> bool:
        return bool(self.known)

    def of(self, pod: Pod) -> Gang | None:
        """The gang of a pod, if it exists."""
        return None if pod.gang is None else self.known.get(pod.gang)

    def set(self, gang: Gang) -> None:
        """Add a gang, or replace it."""
        self._part(gang.name)
        self.known[gang.name] = gang
        for other in gang.together:
            self._named_by.setdefault(other, {})[gang.name] = None
        for each in self.group(gang.name):
            self._changes.gangs.append(each)
        if gang.topology is not None:
            self.topologies[gang.name] = gang.topology
        else:
            self.topologies.pop(gang.name, None)

    def remove(self, name: str) -> str:
        """Remove a gang; returns its `booking_name`."""
        self._part(name)
        gang = self.known.pop(name)
        self.topologies.pop(name, None)
        self.requesting.pop(booking_name(gang), None)
        return booking_name(gang)

    def _part(self, name: str) -> None:
        """Forget with which gangs this one starts; their claims are made anew."""
        old = self.known.get(name)
        if old is None:
            return
        for each in self.group(name):
            self._changes.gangs.append(each)
        for other in old.together:
            self._named_by[other].pop(name, None)
            if not self._named_by[other]:
                del self._named_by[other]

    def group(self, name: str) -> tuple[str, ...]:
        """The names of the gangs that start together with this one, it among them, in order.

        Whichever of two names the other, and over any number of steps. Some may not exist.
        """
        if not self._named_by:
            return (name,)
        found, open_ends = {name}, [name]
        while open_ends:
            each = open_ends.pop()
            known = self.known.get(each)
            named = (*(known.together if known is not None else ()), *self._named_by.get(each, ()))
            open_ends += [other for other in named if other not in found]
            found.update(named)
        return tuple(sorted(found))

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

    def allies(self, pods: Iterable[Pod]) -> dict[str, None]:
        """The uids of all pods of the gangs that these pods start with, their own among them."""
        names = dict.fromkeys(pod.gang for pod in pods if pod.gang is not None)
        groups = dict.fromkeys(each for name in names for each in self.group(name))
        return {uid: None for name in groups for uid in self.members.get(name, ())}

    def requests(self, gang: Gang) -> bool:
        """Does the gang request more than its existing pods?"""
        return booking_name(gang) in self.requesting

    def lacks_pods(self, gang: Gang) -> bool:
        """Are there fewer pods than start together, those that have ended well counted?"""
        exist = len(self.members.get(gang.name, ()))
        return exist + sum(number for _, number in gang.done) < gang.min_member

    def note_change(self, pod: Pod) -> None:
        """A pod has changed: the claims of its gang must be made anew."""
        if pod.gang in self.known:
            self._changes.gangs.append(pod.gang)


def booking_name(gang: Gang) -> str:
    """The key in the ledger of what a gang requests beyond its existing pods."""
    return f"<gang {gang.name}>"
