"""Events: what happened to an object, for `kubectl describe` to show.

The same word about the same object is counted, not repeated. Events come after everything else
that is to be written, and where there are too many of them, the newest are left out: they are for
people, and people do not read thousands.
"""

import secrets
from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal

from aliquot.engine import Pod
from aliquot.errors import ApiError
from aliquot.json import Body
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import EVENTS
from aliquot.kube.control.pod_status import now
from aliquot.kube.control.writer import Urgency, Write, Writer

Kind = Literal["Normal", "Warning"]

_MOST_REMEMBERED = 4096
_MOST_WAITING = 5000
_LONGEST = 1024
_COMPONENT = "aliquot"


@dataclass(frozen=True, slots=True)
class About:
    """The object that something happened to."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""


@dataclass(slots=True)
class _Told:
    name: str
    count: int


class Events:
    """Writes events."""

    def __init__(self, client: Client, writer: Writer, instance: str = "") -> None:
        self.left_out = 0
        self._client = client
        self._writer = writer
        self._instance = instance
        self._told: OrderedDict[tuple[About, str, str], _Told] = OrderedDict()

    def tell(self, about: About, kind: Kind, reason: str, message: str) -> None:
        """Something happened to an object."""
        message = message if len(message) <= _LONGEST else f"{message[: _LONGEST - 3]}..."
        key = (about, reason, message)
        told = self._told.pop(key, None)
        if told is None and self._writer.waiting > _MOST_WAITING:
            self.left_out += 1
            return
        if told is None:
            told = _Told(f"{about.name[:200]}.{secrets.token_hex(8)}", 0)
        told.count += 1
        self._told[key] = told
        if len(self._told) > _MOST_REMEMBERED:
            self._told.popitem(last=False)
        self._add(about, kind, reason, message, told)

    def _add(self, about: About, kind: Kind, reason: str, message: str, told: _Told) -> None:
        namespace = about.namespace or "default"

        async def run() -> None:
            if told.count > 1:
                body = {"count": told.count, "lastTimestamp": now()}
                try:
                    await self._client.patch(EVENTS.path(namespace, told.name), body)
                    return
                except ApiError as error:
                    if error.code != 404:
                        raise
            made = self._event(about, kind, reason, message, told)
            try:
                await self._client.post(EVENTS.path(namespace), made)
            except ApiError as error:
                if error.code not in (403, 404, 409):  # its namespace is being deleted
                    raise

        self._writer.add(Write(f"event {told.name}", "event", Urgency.EVENT, run))

    def _event(self, about: About, kind: Kind, reason: str, message: str, told: _Told) -> Body:
        moment = now()
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": told.name, "namespace": about.namespace or "default"},
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
            "count": told.count,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "source": {"component": _COMPONENT},
            "reportingComponent": _COMPONENT,
            "reportingInstance": self._instance,
        }


def of_pod(pod: Pod) -> About:
    """A pod, as an event names it."""
    return About("v1", "Pod", pod.namespace, pod.name, pod.uid)
