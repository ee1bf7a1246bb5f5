"""The status of pods: the only module that writes a pod's condition, nomination and labels.

One instance compares what is to be written with what the cluster shows, and remembers what it has
written since: so a pod is patched only where something differs. The reason `Unschedulable` is used
only where a new node would help: cluster autoscalers add nodes for it. A pod that waits for its
quota has the engine's own reason, and no node is added for it.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from weakref import WeakKeyDictionary

from aliquot.engine import Engine, Pod, Reason, Refusal
from aliquot.errors import ApiError
from aliquot.json import Body
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import PODS
from aliquot.kube.control.shown_status import ShownRefusal, ShownStatus
from aliquot.kube.control.writer import WRITE_SECONDS, Urgency, Write, Writer

BINDING_FAILED = "BindingFailed"
"""The reason in the condition of a pod whose binding was refused."""
INVALID_POD = "InvalidPod"
"""The reason in the condition of a pod that cannot be read."""
_HELPED_BY_NODES = {Reason.NO_NODE_FITS}
_POD_GONE = (HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY)
"""The pod was deleted, or another pod has its name (its uid does not fit): nothing to write."""
_REPEAT_SECONDS = 5.0
"""How long a label that the watch does not show yet is not written again: it shows a write in well
under a second, so that only a lost write is."""


def public_reason(reason: Reason) -> str:
    """The reason as it stands in a pod's condition."""
    return "Unschedulable" if reason in _HELPED_BY_NODES else reason.value


class PodStatus:
    """Writes conditions, nominations and labels of pods; `shown` is what the cluster shows."""

    def __init__(
        self, client: Client, writer: Writer, shown: Callable[[], Mapping[str, ShownStatus]]
    ) -> None:
        self._client = client
        self._writer = writer
        self._shown = shown
        self._refusals: WeakKeyDictionary[ShownStatus, ShownRefusal] = WeakKeyDictionary()
        """Conditions that were written after the cluster has shown the pod last."""
        self._nominated: dict[str, str] = {}
        """The node of each pod whose nomination is in the cluster, or about to be written."""
        self._labels: dict[str, tuple[Mapping[str, str | None], float]] = {}
        """The last change of a pod's labels that was written, and when."""

    def begin(self) -> None:
        """Start with a new engine: what the cluster shows is all that was written."""
        self._refusals.clear()
        self._labels.clear()
        shown = self._shown().items()
        self._nominated = {uid: each.nominated for uid, each in shown if each.nominated is not None}

    def refusal(self, uid: str) -> ShownRefusal | None:
        """Reason and message in a pod's condition: as written last, or else as shown."""
        shown = self._shown().get(uid)
        return self._refusals.get(shown, shown.refusal) if shown is not None else None

    def shows(self, uid: str) -> bool:
        """Does the cluster show this pod?"""
        return uid in self._shown()

    def refused(self) -> list[str]:
        """The uids of the pods with a condition that says why they wait."""
        return [uid for uid in self._shown() if self.refusal(uid) is not None]

    def refuse(self, pod: Pod, refusal: ShownRefusal) -> bool:
        """Write why a pod waits; returns False if its condition says so, or the pod is gone."""
        shown, before = self._shown().get(pod.uid), self.refusal(pod.uid)
        if shown is None or before == refusal:
            return False
        self._refusals[shown] = refusal
        reason, message = refusal
        condition: Body = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
        }
        if before is None:
            condition |= {"lastProbeTime": None, "lastTransitionTime": now()}
        self._status(pod, "condition", Urgency.CONDITION, {"conditions": [condition]})
        return True

    def withdraw_refusal(self, uid: str) -> None:
        """Do not write why a pod waits, if that was not sent yet: the pod is bound."""
        self._writer.withdraw(uid, "condition")

    def note_nomination(self, pod: Pod, node: str) -> None:
        """A nomination was decided; it is written by `nominate`, after the evictions for it."""
        self._nominated[pod.uid] = node

    def nominate(self, pod: Pod, node: str | None) -> None:
        """Write the node that a pod is nominated to; None clears it."""
        self._status(pod, "nominate", Urgency.NOMINATION, {"nominatedNodeName": node})

    def clear_nomination(self, pod: Pod) -> None:
        """Clear the nomination of a pod, if the cluster shows one."""
        shown = self._shown().get(pod.uid)
        if shown is not None and shown.nominated is not None:
            self.nominate(pod, None)

    def update_nominations(self, engine: Engine) -> None:
        """Clear or change the nominations that the engine has dropped or moved."""
        for uid, node in list(self._nominated.items()):
            nominated = engine.nominated_node(uid)
            if nominated == node:
                continue
            self._writer.withdraw(uid, "nominate")
            if nominated is None:
                del self._nominated[uid]
            else:
                self._nominated[uid] = nominated
            pod = engine.waiting_pod(uid)
            if pod is not None and uid in self._shown():
                self.nominate(pod, nominated)

    def update_labels(self, pods: Iterable[Pod], wanted: Mapping[str, Mapping[str, str]]) -> None:
        """Write the capacity labels of these pods that differ from the wanted ones, by uid."""
        oldest = time.monotonic() - _REPEAT_SECONDS
        self._labels = {uid: last for uid, last in self._labels.items() if last[1] >= oldest}
        for pod in pods:
            shown, labels = self._shown().get(pod.uid), wanted.get(pod.uid, {})
            if shown is not None and shown.capacity != labels:
                self._label(pod, shown.capacity, labels)

    def _label(self, pod: Pod, has: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Set labels of a pod, and remove others, unless just that was written just now."""
        change: dict[str, str | None] = {key: None for key in has if key not in labels}
        change |= {key: value for key, value in labels.items() if has.get(key) != value}
        last = self._labels.get(pod.uid)
        if last is None or last[0] != change:
            self._labels[pod.uid] = (change, time.monotonic())
            body = {"metadata": {"uid": pod.uid, "labels": change}}
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


def refusal_of(refusal: Refusal) -> ShownRefusal:
    """Reason and message of a refusal, as they stand in a pod's condition."""
    return public_reason(refusal.reason), refusal.message


def event_message(reason: str, message: str) -> str:
    """A refusal as a FailedScheduling event has it: its word first, as events have none for it.

    The word of the engine, not the condition's: `NoNodeFits`, where that says `Unschedulable`.
    """
    return f"{reason}: {message}"


def now() -> str:
    """The current time in the API's format."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
