"""The status of pods: the only module that writes a pod's condition, nomination and labels.

One instance compares what is to be written with what the cluster shows, and remembers what it has
written since: so a pod is patched only where something differs. Why a pod waits, and where room is
held for it, is often another matter a moment later: it is written after that moment, once, as it
is then, and not at all if the pod has started. The reason `Unschedulable` is used
only where a new node would help: cluster autoscalers add nodes for it. A pod that waits for its
quota has the engine's own reason, and no node is added for it.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any
from weakref import WeakKeyDictionary

from aliquot.engine import Engine, Pod, Reason, Refusal
from aliquot.errors import ApiError
from aliquot.json import Body
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import PODS
from aliquot.kube.exchange.shown_status import ShownRefusal, ShownStatus
from aliquot.kube.execution.writer import WRITE_SECONDS, Urgency, Write, Writer

BINDING_FAILED = "BindingFailed"
"""The reason in the condition of a pod whose binding was refused."""
INVALID_POD = "InvalidPod"
"""The reason in the condition of a pod that cannot be read."""
MOMENT = 1.0
"""Seconds that a pod waits before that is written: a person does not look sooner, an autoscaler
looks every few seconds, and in a burst most claims find their room within it."""
_HELPED_BY_NODES = {Reason.NO_NODE_FITS, Reason.TOPOLOGY_UNSATISFIED}
_POD_GONE = (HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY)
"""The pod was deleted, or another pod has its name (its uid does not fit): nothing to write."""
_REPEAT_SECONDS = 5.0
"""How long a label that the watch does not show yet is not written again: it shows a write in well
under a second, so that only a lost write is."""


def _nothing() -> None:
    pass


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
        self._unwritten: dict[str, ShownRefusal] = {}
        """Conditions that are to be written, by uid."""
        self._thens: dict[str, Callable[[], None]] = {}
        """What is to be called once they are written."""
        self._nominated: dict[str, str] = {}
        """The node of each pod whose nomination is in the cluster, or about to be written."""
        self._told: set[str] = set()
        """The pods whose nomination was written, and not cleared since."""
        self._labels: dict[str, tuple[Mapping[str, str | None], float]] = {}
        """The last change of a pod's labels that was written, and when."""

    def begin(self) -> None:
        """Start with a new engine: what the cluster shows is all that was written."""
        self._refusals.clear()
        self._unwritten.clear()
        self._thens.clear()
        self._labels.clear()
        self._told.clear()
        shown = self._shown().items()
        self._nominated = {uid: each.nominated for uid, each in shown if each.nominated is not None}

    def refusal(self, uid: str) -> ShownRefusal | None:
        """Reason and message in a pod's condition: to be written, written last, or as shown."""
        shown = self._shown().get(uid)
        if shown is None:
            return None
        return self._unwritten.get(uid) or self._written(shown)

    def _written(self, shown: ShownStatus) -> ShownRefusal | None:
        return self._refusals.get(shown, shown.refusal)

    def shows(self, uid: str) -> bool:
        """Does the cluster show this pod?"""
        return uid in self._shown()

    def refused(self) -> list[str]:
        """The uids of the pods with a condition that says why they wait."""
        return [uid for uid in self._shown() if self.refusal(uid) is not None]

    def refuse(
        self,
        pod: Pod,
        refusal: ShownRefusal,
        then: Callable[[], None] = _nothing,
        *,
        at_once: bool = False,
    ) -> None:
        """Write why a pod waits, unless its condition says so, or the pod is gone.

        If it still waits for that in a moment, or at once; when it is written, `then` is called:
        without one, that of the same reason in other words, if these are not written yet.
        """
        shown = self._shown().get(pod.uid)
        if shown is None or self.refusal(pod.uid) == refusal:
            return
        if self._written(shown) == refusal:
            self.withdraw_refusal(pod.uid)  # its reason was another one for less than a moment
            return
        unwritten = self._unwritten.get(pod.uid)
        if then is _nothing and unwritten is not None and unwritten[0] == refusal[0]:
            then = self._thens[pod.uid]
        self._unwritten[pod.uid], self._thens[pod.uid] = refusal, then

        async def run() -> None:
            await self._write_refusal(pod, refusal, then)

        delay = 0.0 if at_once else MOMENT
        self._writer.add(Write(pod.uid, "condition", Urgency.CONDITION, run, delay))

    async def _write_refusal(
        self, pod: Pod, refusal: ShownRefusal, then: Callable[[], None]
    ) -> None:
        """Write it, unless the pod is bound or gone by now."""
        shown = self._shown().get(pod.uid)
        if shown is not None and not shown.bound:
            (reason, message), before = refusal, self._written(shown)
            condition: Body = {"type": "PodScheduled", "status": "False"}
            condition |= {"reason": reason, "message": message}
            if before is None:
                condition |= {"lastProbeTime": None, "lastTransitionTime": now()}
            self._refusals[shown] = refusal
            try:
                await self._patch_status(pod, {"conditions": [condition]})
            except BaseException:
                self._refusals.pop(shown, None)  # as shown, until it is written again
                raise
            then()
        if self._unwritten.get(pod.uid) == refusal:
            del self._unwritten[pod.uid], self._thens[pod.uid]

    def withdraw_refusal(self, uid: str) -> None:
        """Do not write why a pod waits, if that was not sent yet: the pod is bound."""
        self._unwritten.pop(uid, None)
        self._thens.pop(uid, None)
        self._writer.withdraw(uid, "condition")

    def note_nomination(self, pod: Pod, node: str) -> None:
        """A nomination was decided; it is written by `nominate`, after the evictions for it."""
        self._nominated[pod.uid] = node

    def nominate(self, pod: Pod, node: str) -> None:
        """Write the node that a pod is nominated to, if it still waits for it in a moment."""

        async def run() -> None:
            self._told.add(pod.uid)
            await self._patch_status(pod, {"nominatedNodeName": node})

        self._writer.add(Write(pod.uid, "nominate", Urgency.NOMINATION, run, MOMENT))

    def clear_nomination(self, pod: Pod) -> None:
        """Clear the nomination of a pod, if the cluster shows one, or it was written."""
        shown = self._shown().get(pod.uid)
        if shown is None or (shown.nominated is None and pod.uid not in self._told):
            return

        async def run() -> None:
            await self._patch_status(pod, {"nominatedNodeName": None})
            self._told.discard(pod.uid)

        self._writer.add(Write(pod.uid, "nominate", Urgency.NOMINATION, run))

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
            if pod is None:
                self._told.discard(uid)
            elif nominated is None:
                self.clear_nomination(pod)
            elif uid in self._shown():
                self.nominate(pod, nominated)

    def update_labels(self, pods: Iterable[Pod], wanted: Mapping[str, Mapping[str, str]]) -> None:
        """Write the capacity labels of these pods that differ from the wanted ones, by uid."""
        for pod in pods:
            shown, labels = self._shown().get(pod.uid), wanted.get(pod.uid, {})
            if shown is not None and shown.capacity != labels:
                self._label(pod, shown.capacity, labels)

    def forget_old_labels(self) -> None:
        """A label that was written a while ago is in the cluster by now, or must be sent again."""
        oldest = time.monotonic() - _REPEAT_SECONDS
        self._labels = {uid: last for uid, last in self._labels.items() if last[1] >= oldest}

    def _label(self, pod: Pod, has: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Set labels of a pod, and remove others, unless just that was written just now."""
        change: dict[str, str | None] = {key: None for key in has if key not in labels}
        change |= {key: value for key, value in labels.items() if has.get(key) != value}
        last, oldest = self._labels.get(pod.uid), time.monotonic() - _REPEAT_SECONDS
        if last is None or last[0] != change or last[1] < oldest:
            self._labels[pod.uid] = (change, time.monotonic())
            body = {"metadata": {"uid": pod.uid, "labels": change}}
            run = partial(self._patch, PODS.path(pod.namespace, pod.name), body)
            self._writer.add(Write(pod.uid, "label", Urgency.STATUS, run))

    async def _patch_status(self, pod: Pod, status: Body) -> None:
        body = {"metadata": {"uid": pod.uid}, "status": status}
        await self._patch(PODS.path(pod.namespace, pod.name, "status"), body)

    async def _patch(self, where: str, body: Any) -> None:
        try:
            await self._client.patch(where, body, "strategic", timeout=WRITE_SECONDS)
        except ApiError as error:
            if error.code not in _POD_GONE:
                raise


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
    return _written(int(time.time()))


@lru_cache(maxsize=1)
def _written(second: int) -> str:
    """A second in the API's format: many writes share one."""
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
