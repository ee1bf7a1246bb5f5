"""What has happened, as the page tells it: starts, evictions and for whom, changes of quotas.

Starts and changes follow from the engine's events. Who was evicted for whom is in the Events that
the control plane writes about victims; those of the last hour are there from the beginning.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from aliquot.dialects.core.objects import Metadata, Wire
from aliquot.dialects.core.times import timestamp
from aliquot.engine import SECOND, Pod, Quota, quantity

Entry = dict[str, Any]

EVICTED = "Preempted"
"""The reason of the Event about a pod that is evicted."""
_MESSAGE = re.compile(r"(?P<reason>\w+): evicted(?: for (?P<claim>\S+))?: (?P<message>.*)", re.S)

_KINDS = {"started": "start", "evicted": "evict"}
_OF_EVICTIONS = ("pod", "quota", "for", "reason", "message")


class _Place(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class EventWire(Wire):
    """An Event, as far as it tells of an eviction."""

    metadata: Metadata
    message: str = ""
    involved_object: _Place = _Place()
    last_timestamp: str | None = None


def eviction(event: EventWire, quota: str | None) -> Entry | None:
    """The entry of an eviction; None for an Event of another scheduler."""
    found = _MESSAGE.fullmatch(event.message)
    if found is None or event.last_timestamp is None:
        return None
    return {
        "at": (timestamp(event.last_timestamp, "event", "lastTimestamp") or 0) / SECOND,
        "kind": "evict",
        "pod": f"{event.involved_object.namespace}/{event.involved_object.name}",
        "quota": quota,
        "for": found["claim"],
        "reason": found["reason"],
        "message": found["message"],
    }


def start(pod: Pod, quota: str | None, now: int) -> Entry:
    """The entry of a pod that has started."""
    return {
        "at": now / SECOND,
        "kind": "start",
        "pod": pod.path,
        "quota": quota,
        "node": pod.node,
    }


def end(pod: Pod, quota: str | None, now: int) -> Entry:
    """The entry of a running pod that is there no more: it has ended, or was deleted."""
    return {"at": now / SECOND, "kind": "end", "pod": pod.path, "quota": quota, "node": pod.node}


def change(name: str, before: Quota | None, after: Quota | None, now: int) -> Entry | None:
    """The entry of a quota that was created, deleted, or whose bounds have changed."""
    what = "created" if before is None else "changed" if after is not None else "deleted"
    moved = list(_moved(before, after))
    if what == "changed" and not moved:
        return None
    return {"at": now / SECOND, "kind": "quota", "quota": name, "what": what, "moved": moved}


def _moved(before: Quota | None, after: Quota | None) -> Iterator[list[Any]]:
    """Bounds that differ: which, of what resource, before and after; None is no bound."""
    for bound in ("min", "max"):
        old, new = (dict(getattr(each, bound)) if each else {} for each in (before, after))
        for resource in sorted(old.keys() | new.keys()):
            pair = [_bounded(each.get(resource)) for each in (old, new)]
            if pair[0] != pair[1]:
                yield [bound, resource, *pair]


def _bounded(amount: int | None) -> int | None:
    return None if amount is None or amount >= quantity.LIMIT else amount


def decided(entry: Mapping[str, Any], at: float) -> Entry | None:
    """The entry of a decision as the decision log has it; None for one that moves no pod."""
    kind = _KINDS.get(str(entry.get("what")))
    if kind is None:
        return None
    fields = ("pod", "quota", "node") if kind == "start" else _OF_EVICTIONS
    return {"at": at, "kind": kind} | {field: entry.get(field) for field in fields}
