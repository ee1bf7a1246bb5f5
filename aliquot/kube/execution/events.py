"""Events of the API, as `kubectl describe` shows them.

An event with the same reason and message about the same object is counted, not repeated. Events are
written after everything else, and new ones are dropped while too many writes wait: they are for
people to read, and must never hold up a binding.
"""

import secrets
from collections import OrderedDict
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal

from aliquot.engine import Pod
from aliquot.errors import ApiError
from aliquot.json import Body
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import EVENTS
from aliquot.kube.execution.pod_status import now
from aliquot.kube.execution.writer import Urgency, Write, Writer

Kind = Literal["Normal", "Warning"]

_MOST_REMEMBERED = 4096
"""Events that are counted when they happen again: the cache size of client-go's event recorder."""
_MOST_WAITING = 5000
"""Waiting writes above which new events are dropped: some seconds of writing."""
_LONGEST_MESSAGE = 1024
"""Characters: the bound that events.k8s.io/v1 sets."""
_LONGEST_NAME = 200
"""Characters of the object's name in an event's: with the suffix below the limit of 253."""
_NO_FAILURE = (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
"""Refusals that are ignored: the namespace is being deleted, or the event exists already."""
_COMPONENT = "aliquot"


@dataclass(frozen=True, slots=True)
class InvolvedObject:
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""


@dataclass(slots=True)
class _Recorded:
    """An event that was written: its name, and how often it happened."""

    name: str
    count: int
    first: str
    last: str
    """When it happened: it may be written much later."""


class Events:
    """Records events; the writer writes them."""

    def __init__(self, client: Client, writer: Writer, instance: str = "") -> None:
        self.dropped = 0
        self._client = client
        self._writer = writer
        self._instance = instance
        self._recorded: OrderedDict[tuple[InvolvedObject, str, str], _Recorded] = OrderedDict()

    def record(self, about: InvolvedObject, kind: Kind, reason: str, message: str) -> None:
        """Record an event about an object."""
        if len(message) > _LONGEST_MESSAGE:
            message = f"{message[: _LONGEST_MESSAGE - 3]}..."
        key = (about, reason, message)
        event = self._recorded.pop(key, None)
        if event is None and self._writer.waiting > _MOST_WAITING:
            self.dropped += 1
            return
        moment = now()
        if event is None:
            name = f"{about.name[:_LONGEST_NAME]}.{secrets.token_hex(8)}"
            event = _Recorded(name, 0, moment, moment)
        event.count += 1
        event.last = moment
        self._recorded[key] = event
        if len(self._recorded) > _MOST_REMEMBERED:
            self._recorded.popitem(last=False)
        self._add(about, kind, reason, message, event)

    def _add(
        self, about: InvolvedObject, kind: Kind, reason: str, message: str, event: _Recorded
    ) -> None:
        namespace = about.namespace or "default"

        async def run() -> None:
            if event.count > 1:
                body = {"count": event.count, "lastTimestamp": event.last}
                try:
                    await self._client.patch(EVENTS.path(namespace, event.name), body)
                    return
                except ApiError as error:
                    if error.code != HTTPStatus.NOT_FOUND:
                        raise
            body = self._body(about, kind, reason, message, event)
            try:
                await self._client.post(EVENTS.path(namespace), body)
            except ApiError as error:
                if error.code not in _NO_FAILURE:
                    raise

        self._writer.add(Write(f"event {event.name}", "event", Urgency.EVENT, run))

    def _body(
        self, about: InvolvedObject, kind: Kind, reason: str, message: str, event: _Recorded
    ) -> Body:
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": event.name, "namespace": about.namespace or "default"},
            "involvedObject": {
                "apiVersion": about.api_version,
                "kind": about.kind,
                "name": about.name,
                **({"namespace": about.namespace} if about.namespace else {}),
                **({"uid": about.uid} if about.uid else {}),
            },
            "type": kind,
            "reason": reason,
            "message": message,
            "count": event.count,
            "firstTimestamp": event.first,
            "lastTimestamp": event.last,
            "source": {"component": _COMPONENT},
            "reportingComponent": _COMPONENT,
            "reportingInstance": self._instance,
        }


def of_pod(pod: Pod) -> InvolvedObject:
    """The pod as the object of an event."""
    return InvolvedObject("v1", "Pod", pod.namespace, pod.name, pod.uid)
