"""Evicts pods by the eviction API, which respects PodDisruptionBudgets.

An eviction that budgets refuse is reported once, and retried with backoff for as long as a claim
still waits for it. Budgets are respected for `deleteAfter`; then, for a claim that is owed what it
asks for, the pod is deleted, as kube-scheduler's preemption does: a budget must not keep the min of
another team away. For other claims the budget stands. Once no claim waits for the pod any longer,
the eviction is dropped: no pod may be evicted without need.

A victim whose grace period is longer than `maxGrace` gets that instead. A pod that terminates
already with a longer one is evicted again, which shortens it: its budgets do not count any more.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from aliquot.engine import SECOND, Evict
from aliquot.errors import ApiError
from aliquot.json import Body
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import PODS
from aliquot.kube.execution.binder import read_pod
from aliquot.kube.execution.writer import WRITE_SECONDS, Urgency, Write, Writer, is_retriable

_BUDGET = "DisruptionBudget"
"""The cause in the answer of the eviction API where a PodDisruptionBudget refuses."""
_SEVERAL = "more than one PodDisruptionBudget"
"""In the message of the eviction API where several budgets match: status 500, and no cause."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long budgets are respected, and the longest grace period of a victim, in seconds."""

    delete_after: float = 60.0
    """0: for ever."""
    max_grace: int = 3600


class Evictor:
    """Carries out `Evict` decisions.

    `wanted` says whether one is still needed, `owed` whether it is for an owed claim.
    """

    def __init__(
        self,
        client: Client,
        writer: Writer,
        wanted: Callable[[Evict], bool],
        evicted: Callable[[Evict], None],
        failed: Callable[[Evict, str], None],
        refused_by_budget: Callable[[Evict, str], None],
        owed: Callable[[Evict], bool],
        deleted: Callable[[Evict, str], None],
        limits: Limits,
        paused: Callable[[], bool] = lambda: False,
    ) -> None:
        self._paused = paused
        self._client = client
        self._writer = writer
        self._wanted = wanted
        self._evicted = evicted
        self._failed = failed
        self._refused_by_budget = refused_by_budget
        self._owed = owed
        self._deleted = deleted
        self._limits = limits
        self._refused: dict[str, tuple[float, str]] = {}
        """Since when budgets refuse the eviction of a pod, and their words, by uid."""
        self._put_off: dict[str, Evict] = {}
        """Evictions that were to be sent while evictions are paused, by uid."""

    def send_put_off(self) -> None:
        """Have evictions sent that a pause put off, if it is over or they are not needed now."""
        paused = self._paused()
        for uid, decision in list(self._put_off.items()):
            if not paused or not self._wanted(decision):
                del self._put_off[uid]
                self.evict(decision)

    def evict(self, decision: Evict) -> None:
        """Have the writer evict a pod."""

        async def run() -> None:
            await self._evict(decision)

        self._writer.add(Write(decision.pod.uid, "evict", Urgency.DECISION, run))

    async def _evict(self, decision: Evict) -> None:
        uid = decision.pod.uid
        if not self._wanted(decision):
            self._refused.pop(uid, None)
            self._failed(decision, "nobody waits for it to go any longer")
            return
        if self._paused():
            self._put_off[uid] = decision
            return
        overdue = self._is_overdue(decision)
        try:
            await (self._delete(decision) if overdue else self._create_eviction(decision))
        except ApiError as error:
            conflict = error.code == HTTPStatus.CONFLICT
            if not conflict and is_retriable(error):
                self._note_budgets(decision, error)
                raise
            if conflict and await self._is_running(decision):
                raise  # the pod was written at the same moment: the writer retries
            if not conflict and error.code != HTTPStatus.NOT_FOUND:
                self._refused.pop(uid, None)
                self._failed(decision, error.message)
                return
        _, words = self._refused.pop(uid, (0.0, ""))
        if overdue:
            self._deleted(decision, words)
        self._evicted(decision)  # or it was deleted already, or another pod has its name

    def _is_overdue(self, decision: Evict) -> bool:
        """Have budgets refused it for `deleteAfter`, and is the claim that waits owed it?"""
        since, _ = self._refused.get(decision.pod.uid, (None, ""))
        if since is None or not self._limits.delete_after:
            return False
        return time.monotonic() - since >= self._limits.delete_after and self._owed(decision)

    def _note_budgets(self, decision: Evict, error: ApiError) -> None:
        """Note since when budgets refuse the eviction; report it the first time that they do."""
        causes = error.details.get("causes") or ()
        why = [each.get("message", "") for each in causes if each.get("reason") == _BUDGET]
        if not why and _SEVERAL not in error.message:
            return
        if decision.pod.uid not in self._refused:
            words = " ".join((error.message, *why[:1])).strip()
            self._refused[decision.pod.uid] = time.monotonic(), words
            self._refused_by_budget(decision, words)

    async def _is_running(self, decision: Evict) -> bool:
        """Does the pod still exist, and does it not terminate within `maxGrace`?"""
        found = await read_pod(self._client, decision.pod)
        if found is None:
            return False
        grace = found["metadata"].get("deletionGracePeriodSeconds") or 0
        ends = "deletionTimestamp" in found["metadata"] and grace <= self._limits.max_grace
        return not ends

    async def _create_eviction(self, decision: Evict) -> None:
        pod = decision.pod
        body: Body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": self._options(decision),
        }
        where = PODS.path(pod.namespace, pod.name, "eviction")
        await self._client.post(where, body, timeout=WRITE_SECONDS)

    async def _delete(self, decision: Evict) -> None:
        pod = decision.pod
        options = {"apiVersion": "v1", "kind": "DeleteOptions", **self._options(decision)}
        await self._client.delete(
            PODS.path(pod.namespace, pod.name), options, timeout=WRITE_SECONDS
        )

    def _options(self, decision: Evict) -> Body:
        options: Body = {"preconditions": {"uid": decision.pod.uid}}
        if decision.pod.grace_period > self._limits.max_grace * SECOND:
            options["gracePeriodSeconds"] = self._limits.max_grace
        return options
