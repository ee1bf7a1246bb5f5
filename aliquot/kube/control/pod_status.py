"""What is written onto pods for others to read: why one waits, where room is held, its capacity.

The reason `Unschedulable` is kept for what a new node would help with: autoscalers buy nodes for
it. A pod that waits because of a quota says so in our words, and nobody buys anything.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from aliquot.engine import Pod, Reason, Refusal
from aliquot.errors import ApiError
from aliquot.json import Body
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import PODS
from aliquot.kube.control.writer import SECONDS, Urgency, Write, Writer

_HELPED_BY_NODES = {Reason.NO_NODE_FITS}
_NO_LONGER_THERE = (404, 422)
"""The pod is gone, or is another one: there is nobody to write it on."""


def public_reason(reason: Reason) -> str:
    """The reason as the condition of a pod has it."""
    return "Unschedulable" if reason in _HELPED_BY_NODES else reason.value


class PodStatusWriter:
    """Writes onto pods."""

    def __init__(self, client: Client, writer: Writer) -> None:
        self._client = client
        self._writer = writer

    def refuse(self, pod: Pod, refusal: tuple[str, str], known: bool) -> None:
        """Say why a pod waits: reason and message. `known`: it was waiting before."""
        reason, message = refusal
        condition: Body = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
        }
        if not known:
            condition |= {"lastProbeTime": None, "lastTransitionTime": now()}
        self._status(pod, "condition", Urgency.REASON, {"conditions": [condition]})

    def nominate(self, pod: Pod, node: str | None) -> None:
        """Say where room is held for a pod, or that none is any longer."""
        self._status(pod, "nominate", Urgency.PLACE, {"nominatedNodeName": node})

    def label(self, pod: Pod, labels: Mapping[str, str | None]) -> None:
        """Set labels of a pod; None takes one away."""
        body = {"metadata": {"uid": pod.uid, "labels": dict(labels)}}
        self._add(pod, "label", Urgency.STATUS, PODS.path(pod.namespace, pod.name), body)

    def _status(self, pod: Pod, word: str, urgency: Urgency, status: Body) -> None:
        body = {"metadata": {"uid": pod.uid}, "status": status}
        self._add(pod, word, urgency, PODS.path(pod.namespace, pod.name, "status"), body)

    def _add(self, pod: Pod, word: str, urgency: Urgency, where: str, body: Any) -> None:
        async def run() -> None:
            try:
                await self._client.patch(where, body, "strategic", timeout=SECONDS)
            except ApiError as error:
                if error.code not in _NO_LONGER_THERE:
                    raise

        self._writer.add(Write(pod.uid, word, urgency, run))


def refusal_of(refusal: Refusal) -> tuple[str, str]:
    """Reason and message, as they stand in the condition."""
    return public_reason(refusal.reason), refusal.message


def now() -> str:
    """The time as the API writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
