"""Evicts pods by the eviction API, which respects PodDisruptionBudgets.

An eviction that a budget refuses is reported once, and retried with backoff for as long as a claim
still waits for it; with `delete_after`, for those who put guarantees above budgets, the pod is
deleted after that time. Once no claim waits for it any longer, the eviction is dropped: no pod may
be evicted without need.
"""

import time
from collections.abc import Callable
from http import HTTPStatus

from aliquot.engine import Evict
from aliquot.errors import ApiError
from aliquot.json import Body
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import PODS
from aliquot.kube.control.binder import read_pod
from aliquot.kube.control.writer import WRITE_SECONDS, Urgency, Write, Writer, is_retriable

_BUDGET = "DisruptionBudget"
"""The cause in the answer of the eviction API where a PodDisruptionBudget refuses."""


class Evictor:
    """Carries out `Evict` decisions; `wanted` says whether one is still needed."""

    def __init__(
        self,
        client: Client,
        writer: Writer,
        wanted: Callable[[Evict], bool],
        evicted: Callable[[Evict], None],
        failed: Callable[[Evict, str], None],
        refused_by_budget: Callable[[Evict, str], None],
        delete_after: float | None = None,
        paused: Callable[[], bool] = lambda: False,
    ) -> None:
        self._paused = paused
        self._client = client
        self._writer = writer
        self._wanted = wanted
        self._evicted = evicted
        self._failed = failed
        self._refused_by_budget = refused_by_budget
        self._reported: set[str] = set()
        """The uids of the pods whose eviction a budget refuses, as far as that was reported."""
        self._delete_after = delete_after
        self._put_off: dict[str, tuple[Evict, float]] = {}
        """Evictions that were to be sent while evictions are paused, and since when, by uid."""

    def evict(self, decision: Evict) -> None:
        """Have the writer evict a pod."""
        self._add(decision, time.monotonic())

    def send_put_off(self) -> None:
        """Have evictions sent that a pause put off, if it is over or they are not needed now."""
        paused = self._paused()
        for uid, (decision, since) in list(self._put_off.items()):
            if not paused or not self._wanted(decision):
                del self._put_off[uid]
                self._add(decision, since)

    def _add(self, decision: Evict, since: float) -> None:
        async def run() -> None:
            await self._evict(decision, since)

        self._writer.add(Write(decision.pod.uid, "evict", Urgency.DECISION, run))

    async def _evict(self, decision: Evict, since: float) -> None:
        if not self._wanted(decision):
            self._reported.discard(decision.pod.uid)
            self._failed(decision, "nobody waits for it to go any longer")
            return
        if self._paused():
            self._put_off[decision.pod.uid] = decision, since
            return
        overdue = self._delete_after is not None and time.monotonic() - since >= self._delete_after
        try:
            await (self._delete(decision) if overdue else self._create_eviction(decision))
        except ApiError as error:
            conflict = error.code == HTTPStatus.CONFLICT
            if not conflict and is_retriable(error):
                self._report_budget(decision, error)
                raise
            if conflict and await self._is_running(decision):
                raise  # the pod was written at the same moment: the writer retries
            if not conflict and error.code != HTTPStatus.NOT_FOUND:
                self._failed(decision, error.message)
                return
        self._reported.discard(decision.pod.uid)
        self._evicted(decision)  # or it was deleted already, or another pod has its name

    def _report_budget(self, decision: Evict, error: ApiError) -> None:
        """Report that a disruption budget refuses the eviction, the first time that it does."""
        causes = error.details.get("causes") or ()
        why = [each.get("message", "") for each in causes if each.get("reason") == _BUDGET]
        if why and decision.pod.uid not in self._reported:
            self._reported.add(decision.pod.uid)
            self._refused_by_budget(decision, f"{error.message} {why[0]}".strip())

    async def _is_running(self, decision: Evict) -> bool:
        """Does the pod still exist, without a deletion timestamp?"""
        found = await read_pod(self._client, decision.pod)
        return found is not None and "deletionTimestamp" not in found["metadata"]

    async def _create_eviction(self, decision: Evict) -> None:
        pod = decision.pod
        body: Body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": _options(decision),
        }
        where = PODS.path(pod.namespace, pod.name, "eviction")
        await self._client.post(where, body, timeout=WRITE_SECONDS)

    async def _delete(self, decision: Evict) -> None:
        pod = decision.pod
        options = {"apiVersion": "v1", "kind": "DeleteOptions", **_options(decision)}
        await self._client.delete(
            PODS.path(pod.namespace, pod.name), options, timeout=WRITE_SECONDS
        )


def _options(decision: Evict) -> Body:
    return {"preconditions": {"uid": decision.pod.uid}}
