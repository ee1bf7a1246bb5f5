"""Upkeep: what keeps a server that runs for weeks as small as its objects.

Events expire an hour after their last write, as in kube-apiserver, where etcd's leases end them:
whatever their finalizers, without admission. In memory there is room for so many; beyond it the
oldest go first. Windows and the log drop what is no longer needed.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime

from aliquot.json import Body
from aliquot.server.storage.entry import Entry, Key
from aliquot.server.storage.store import Store
from aliquot.server.storage.window import Change

EVENT_SECONDS = 3600.0
"""How long an Event lives after its last write: kube-apiserver's `--event-ttl`."""
_MOST_EVENTS = 4096
"""Events kept: as many as client-go's recorder remembers to count them; some 20 MB."""
_AT_ONCE = 500
"""Events removed at a time, so that requests are answered in between."""
_EVERY_SECONDS = 2.0
"""Between two rounds: short against the times above, long against what a round takes."""
_EVENTS = "events"


class Upkeep:
    """Removes expired Events, and compacts the store."""

    def __init__(
        self,
        store: Store,
        event_seconds: float = EVENT_SECONDS,
        most_events: int = _MOST_EVENTS,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store, self._clock = store, clock
        self._event_seconds, self._most_events = event_seconds, most_events
        self._written: OrderedDict[Key, float] = OrderedDict()
        """When each Event was written last, the oldest first."""
        now = clock().timestamp()
        found = [(min(_last_seen(each), now), each.key) for each in store.all(_EVENTS)]
        self._written.update((key, at) for at, key in sorted(found))
        store.listeners.append(self._on_change)

    async def run(self) -> None:
        """Do it again and again, until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            await self.work()

    async def work(self) -> None:
        """One round."""
        while self._expire():
            await asyncio.sleep(0)
        await self._store.compact()

    def _expire(self) -> bool:
        """Remove some Events that are too old or too many; returns whether there may be more."""
        oldest = self._clock().timestamp() - self._event_seconds
        for _ in range(_AT_ONCE):
            key = next(iter(self._written), None)
            if key is None:
                return False
            if self._written[key] > oldest and len(self._written) <= self._most_events:
                return False
            found = self._store.get(_EVENTS, *key)
            assert found is not None, "the listener follows every change"
            self._store.remove(_EVENTS, found.read())
        return True

    def _on_change(self, change: Change) -> None:
        if change.storage != _EVENTS:
            return
        self._written.pop(change.entry.key, None)
        if change.type != "DELETED":
            self._written[change.entry.key] = self._clock().timestamp()


def _last_seen(entry: Entry) -> float:
    """When an Event that was read from the log was written last, as far as it says so."""
    body = entry.read()
    series: Body = body.get("series") or {}
    said = (
        body["metadata"].get("creationTimestamp"),
        body.get("lastTimestamp"),
        series.get("lastObservedTime"),
    )
    return max(_seconds(each) for each in said)


def _seconds(text: object) -> float:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0
