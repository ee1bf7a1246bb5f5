"""Assumed pods: a Bind that the cluster never confirms is taken back after a while.

A Bind is booked when it is decided, so that the next decision sees it. If the process stops between
deciding and binding, no BindFailed event ever comes; so an assumption must not last for ever. It
must last longer than the volumes of a pod may take to be bound: the pod is bound after them.
"""

from aliquot.engine.books.ledger import Stage
from aliquot.engine.model.events import BindFailed
from aliquot.engine.model.knobs import SECOND
from aliquot.engine.state import State
from aliquot.engine.updates import apply_event

_CONFIRM_WITHIN = 20 * 60 * SECOND
"""Besides the time that volumes may take. Far longer than a bind and its watch event take on a slow
API server: ending an assumption too early would book the room twice, ending it late only leaves the
room idle."""


class AssumedPods:
    """The pods whose Bind was decided and is not confirmed, and since when."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._confirm_within = _CONFIRM_WITHIN + state.knobs.placement.volume_bind_timeout
        self._since: dict[str, int] = {}
        """When the Bind of each was decided, the earliest first."""

    def expire(self, now: int) -> None:
        """Take back the Binds that were not confirmed in time."""
        while (due := self.deadline()) is not None and due <= now:
            uid = next(iter(self._since))
            del self._since[uid]
            apply_event(self._state, BindFailed(uid))

    def note(self, uid: str, now: int) -> None:
        """The Bind of a pod was decided."""
        self._since.pop(uid, None)
        self._since[uid] = now

    def deadline(self) -> int | None:
        """When the next assumption ends; pods that are bound by now are dropped."""
        entries = self._state.ledger.entries
        while self._since:
            uid, since = next(iter(self._since.items()))
            entry = entries.get(uid)
            if entry is not None and entry.stage is Stage.ASSUMED:
                return since + self._confirm_within
            del self._since[uid]
        return None
