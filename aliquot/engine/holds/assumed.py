"""What was decided and never came true: a Bind that nobody confirms is taken back after a while.

A decision is booked at once, so that the next one sees it. Should its carrier die between deciding
and telling, nobody would ever say that it failed; so it is not believed for ever.
"""

from aliquot.engine.books.ledger import Stage
from aliquot.engine.model.events import BindFailed
from aliquot.engine.model.knobs import SECOND
from aliquot.engine.state import State

_LONGEST = 30 * 60 * SECOND


class AssumedPods:
    """The pods that were told to start, and when."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._since: dict[str, int] = {}
        """When they were told so, the first one first."""

    def expire(self, now: int) -> None:
        """Take back what was not confirmed in time."""
        while (due := self.deadline()) is not None and due <= now:
            uid = next(iter(self._since))
            del self._since[uid]
            self._state.apply(BindFailed(uid))

    def note(self, uid: str, now: int) -> None:
        """A pod was told to start."""
        self._since.pop(uid, None)
        self._since[uid] = now

    def deadline(self) -> int | None:
        """When the first of them is no longer believed; those that came true are forgotten."""
        entries = self._state.ledger.entries
        while self._since:
            uid, since = next(iter(self._since.items()))
            entry = entries.get(uid)
            if entry is not None and entry.stage is Stage.ASSUMED:
                return since + _LONGEST
            del self._since[uid]
        return None
