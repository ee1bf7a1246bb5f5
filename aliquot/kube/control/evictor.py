"""Evicts pods by the eviction API, so that disruption budgets are heard.

A budget that refuses is asked again, later and later, for as long as somebody still waits for the
pod to go; whoever prefers guarantees to budgets sets a time after which the pod is deleted instead.
Once nobody waits for it any longer, it is left alone: no eviction without need.
"""

import time
from collections.abc import Callable

from aliquot.engine import Evict
from aliquot.errors import ApiError
from aliquot.json import Body
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import PODS
from aliquot.kube.control.binder import look_up
from aliquot.kube.control.writer import SECONDS, Urgency, Write, Writer, passes

_GONE, _CONFLICT = 404, 409


class Evictor:
    """Carries out `Evict`s. `wanted` says whether one still makes sense."""

    def __init__(
        self,
        client: Client,
        writer: Writer,
        wanted: Callable[[Evict], bool],
        evicted: Callable[[Evict], None],
        failed: Callable[[Evict, str], None],
        delete_after: float | None = None,
    ) -> None:
        self._client = client
        self._writer = writer
        self._wanted = wanted
        self._evicted = evicted
        self._failed = failed
        self._delete_after = delete_after

    def evict(self, decision: Evict) -> None:
        """Have a pod evicted."""
        since = time.monotonic()

        async def run() -> None:
            await self._evict(decision, since)

        self._writer.add(Write(decision.pod.uid, "evict", Urgency.DECISION, run))

    async def _evict(self, decision: Evict, since: float) -> None:
        if not self._wanted(decision):
            self._failed(decision, "nobody waits for it to go any longer")
            return
        late = self._delete_after is not None and time.monotonic() - since >= self._delete_after
        try:
            await (self._delete(decision) if late else self._ask(decision))
        except ApiError as error:
            if error.code != _CONFLICT and passes(error):
                raise
            if error.code == _CONFLICT and await self._is_there(decision):
                raise  # somebody else was writing at the same moment
            if error.code not in (_GONE, _CONFLICT):
                self._failed(decision, error.message)
                return
        self._evicted(decision)  # or it is gone already, or another pod has its name

    async def _is_there(self, decision: Evict) -> bool:
        """Is it still there, and not told to go? Then others were writing at the same moment."""
        found = await look_up(self._client, decision.pod)
        return found is not None and "deletionTimestamp" not in found["metadata"]

    async def _ask(self, decision: Evict) -> None:
        pod = decision.pod
        body: Body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": _options(decision),
        }
        where = PODS.path(pod.namespace, pod.name, "eviction")
        await self._client.post(where, body, timeout=SECONDS)

    async def _delete(self, decision: Evict) -> None:
        pod = decision.pod
        options = {"apiVersion": "v1", "kind": "DeleteOptions", **_options(decision)}
        await self._client.delete(PODS.path(pod.namespace, pod.name), options, timeout=SECONDS)


def _options(decision: Evict) -> Body:
    return {"preconditions": {"uid": decision.pod.uid}}
