"""How the pods of each group have ended, as far as they are still there to be counted."""

from collections import Counter

from aliquot.dialects.core.manifest import Key
from aliquot.mirror.record import Phase

_COUNTED = ("Succeeded", "Failed")

Ending = tuple[Key, str, Phase]
"""A group, a task of it, and how a pod of that has ended."""


class Endings:
    """The last ending of each pod, by its path, and their numbers."""

    def __init__(self) -> None:
        self._last: dict[str, Ending] = {}
        self._count: dict[Key, Counter[tuple[str, Phase]]] = {}

    def note(self, path: str, group: Key | None, task: str, phase: Phase) -> set[Key]:
        """A pod of a group is now in this phase; returns the groups whose numbers are others now.

        A pod that is there anew, or was deleted, has not ended any more.
        """
        before = self._last.pop(path, None)
        after = (group, task, phase) if group is not None and phase in _COUNTED else None
        if after is not None:
            self._last[path] = after
        if before == after:
            return set()
        if after is not None:
            self._count.setdefault(after[0], Counter())[after[1:]] += 1
        if before is not None:
            self._uncount(*before)
        return {ending[0] for ending in (before, after) if ending is not None}

    def _uncount(self, group: Key, task: str, phase: Phase) -> None:
        count = self._count[group]
        count[task, phase] -= 1
        if not any(count.values()):
            del self._count[group]

    def done(self, group: Key) -> tuple[tuple[str, int], ...]:
        """How many pods of each task have ended well."""
        found = self._count.get(group, {}).items()
        return tuple(sorted((task, n) for (task, phase), n in found if n and phase == "Succeeded"))

    def failed(self, group: Key) -> int:
        """How many pods have not."""
        found = self._count.get(group, {}).items()
        return sum(number for (_, phase), number in found if phase == "Failed")
