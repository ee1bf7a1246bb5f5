"""The pause of evictions: an annotation of the namespace that Aliquot runs in.

`aliquot pause evictions` writes it, `aliquot resume evictions` takes it away, and every replica
watches it, so that the leader obeys at once and a restart changes nothing. Its value is JSON: who
has paused evictions, since when, until when if that is known, and why. Any other value than `false`
pauses, too, so that `kubectl annotate` will do: what cannot be read must not evict.
"""

from collections.abc import Callable

import msgspec
import structlog

from aliquot.dialects.core.times import timestamp
from aliquot.engine import Event, EvictionsPaused, EvictionsResumed
from aliquot.errors import InputError, shortened
from aliquot.json import Body

ANNOTATION = "aliquot.dev/evictions-paused"
_OFF = ("", "false")
_log = structlog.get_logger()


class Pause(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who has paused evictions, since when, until when and why, as far as it is written."""

    by: str = ""
    since: str = ""
    until: str = ""
    reason: str = ""

    @property
    def words(self) -> str:
        """`by alice since 2026-01-01T12:00:00Z: an incident`."""
        by = f"by {self.by}" if self.by else ""
        since = f"since {self.since}" if self.since else ""
        words = " ".join(word for word in (by, since) if word)
        words = f"{words}: {self.reason}" if self.reason and words else words or self.reason
        return shortened(words)

    @property
    def ends_at(self) -> int | None:
        """The end in nanoseconds; None if there is none, or none that can be read."""
        try:
            return timestamp(self.until or None, "", "until")
        except InputError:
            return None

    def is_over(self, now: int) -> bool:
        """Has its end come?"""
        return self.ends_at is not None and self.ends_at <= now

    def annotation(self) -> str:
        """The value of the annotation."""
        return msgspec.json.encode(self).decode()


def pause_of(namespace: Body) -> Pause | None:
    """The pause that a namespace is annotated with, if any."""
    metadata: Body = namespace.get("metadata") or {}
    value = (metadata.get("annotations") or {}).get(ANNOTATION)
    if value is None or str(value).strip().lower() in _OFF:
        return None
    try:
        return msgspec.json.decode(str(value), type=Pause)
    except msgspec.MsgspecError:
        return Pause(reason="" if value == "true" else str(value))


class PauseSwitch:
    """Follows the annotation of one namespace, and sends what changes to the engine."""

    def __init__(self, namespace: str, send: Callable[[Event], None]) -> None:
        self.pause: Pause | None = None
        """As the namespace says it; its end may have come."""
        self._namespace = namespace
        self._send = send

    def put(self, name: str, namespace: Body | None) -> None:
        """A namespace was created or changed; None: it was deleted."""
        if name != self._namespace:
            return
        found = None if namespace is None else pause_of(namespace)
        if found == self.pause:
            return
        self.pause = found
        if found is None:
            _log.info("evictions are resumed")
            self._send(EvictionsResumed())
        else:
            _log.warning("evictions are paused", why=found.words, until=found.until or "resumed")
            self._send(EvictionsPaused(found.words, found.ends_at))

    def active(self, now: int) -> Pause | None:
        """The pause that holds now, in nanoseconds, if any."""
        return None if self.pause is None or self.pause.is_over(now) else self.pause
