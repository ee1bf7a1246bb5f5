"""The times that objects show: what has happened by the moment at which they were read.

A dump of kubectl does not say when it was taken. It was no earlier than the latest time that any of
its objects shows: when one was created or changed, a pod started or ended, a node sent its last
sign of life. Times that lie ahead of it are left out: when a deleted pod is to be gone, and what
an object says that comes in a simulation only later.
"""

from collections.abc import Iterator
from typing import Any

from aliquot.dialects.core import simulation_annotations as simulated
from aliquot.dialects.core.times import timestamp
from aliquot.errors import InputError
from aliquot.json import Body, seek

_PAST = frozenset(
    {
        *("creationTimestamp", "time", "startTime", "startedAt", "finishedAt", "completionTime"),
        *("lastTransitionTime", "lastProbeTime", "lastHeartbeatTime", "lastUpdateTime"),
        *("lastScheduleTime", "lastSuccessfulTime", "firstTimestamp", "lastTimestamp"),
        *("eventTime", "lastObservedTime", "acquireTime", "renewTime"),
    }
)
"""The fields of Kubernetes' objects that hold a time that is over."""


class ShownTimes:
    """The times of some objects."""

    def __init__(self) -> None:
        self._shown: set[str] = set()
        """As they are written; each is read once, since thousands of objects share a second."""

    def add(self, body: Body) -> None:
        """Take what one more object shows."""
        self._shown.update(_times(body))

    def latest(self) -> int | None:
        """The latest of them, in nanoseconds since 1970; None if there is none."""
        known = (found for each in self._shown if (found := _read(each)) is not None)
        return max(known, default=None)


def _times(body: Body) -> Iterator[str]:
    """The times that one object shows, as they are written."""
    metadata = body.get("metadata")
    if not isinstance(metadata, dict):
        return
    if isinstance(written := metadata.get("annotations"), dict) and simulated.ARRIVAL in written:
        return
    yield from _own(metadata)
    for each in metadata.get("managedFields") or ():
        yield from _own(each)
    yield from _within(body.get("status"))
    if body.get("kind") == "Lease":
        yield from _own(body.get("spec"))
    elif body.get("kind") == "Event":
        yield from _own(body)
        yield from _own(seek(body, "series"))


def _own(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        yield from (v for k, v in part.items() if k in _PAST and isinstance(v, str))


def _within(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        yield from _own(part)
        for each in part.values():
            yield from _within(each)
    elif isinstance(part, list):
        for each in part:
            yield from _within(each)


def _read(written: str) -> int | None:
    """A time; one that cannot be read is no evidence of when an object was."""
    try:
        return timestamp(written, "", "")
    except InputError:
        return None
