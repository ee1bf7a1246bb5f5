"""The status of pods: the only module that writes a pod's condition, nomination and labels.

The reason `Unschedulable` is used only where a new node would help: cluster autoscalers add nodes
for it. A pod that waits for its quota has the engine's own reason, and no node is added for it.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from aliquot.engine import Pod, Reason, Refusal
from aliquot.errors import ApiError
from aliquot.json import Body
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import PODS
from aliquot.kube.control.writer import WRITE_SECONDS, Urgency, Write, Writer

_HELPED_BY_NODES = {Reason.NO_NODE_FITS}
_POD_GONE = (HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY)
"""The pod was deleted, or another pod has its name (its uid does not fit): nothing to write."""


def public_reason(reason: Reason) -> str:
    """The reason as it stands in a pod's condition."""
    return "Unschedulable" if reason in _HELPED_BY_NODES else reason.value


class PodStatusWriter:
    """Writes conditions, nominations and labels of pods."""

    def __init__(self, client: Client, writer: Writer) -> None:
        self._client = client
        self._writer = writer

    def refuse(self, pod: Pod, refusal: tuple[str, str], known: bool) -> None:
        """Write why a pod waits: reason and message. `known`: its condition was False before."""
        reason, message = refusal
        condition: Body = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
        }
        if not known:
            condition |= {"lastProbeTime": None, "lastTransitionTime": now()}
        self._status(pod, "condition", Urgency.CONDITION, {"conditions": [condition]})

    def nominate(self, pod: Pod, node: str | None) -> None:
        """Write the node that a pod is nominated to; None clears it."""
        self._status(pod, "nominate", Urgency.NOMINATION, {"nominatedNodeName": node})

    def label(self, pod: Pod, labels: Mapping[str, str | None]) -> None:
        """Set labels of a pod; None removes a label."""
        body = {"metadata": {"uid": pod.uid, "labels": dict(labels)}}
        self._add(pod, "label", Urgency.STATUS, PODS.path(pod.namespace, pod.name), body)

    def _status(self, pod: Pod, operation: str, urgency: Urgency, status: Body) -> None:
        body = {"metadata": {"uid": pod.uid}, "status": status}
        self._add(pod, operation, urgency, PODS.path(pod.namespace, pod.name, "status"), body)

    def _add(self, pod: Pod, operation: str, urgency: Urgency, where: str, body: Any) -> None:
        async def run() -> None:
            try:
                await self._client.patch(where, body, "strategic", timeout=WRITE_SECONDS)
            except ApiError as error:
                if error.code not in _POD_GONE:
                    raise

        self._writer.add(Write(pod.uid, operation, urgency, run))


def refusal_of(refusal: Refusal) -> tuple[str, str]:
    """Reason and message of a refusal, as they stand in a pod's condition."""
    return public_reason(refusal.reason), refusal.message


def now() -> str:
    """The current time in the API's format."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
