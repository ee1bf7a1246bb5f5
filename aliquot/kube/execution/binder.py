"""Binds pods to nodes.

A binding names the pod by its uid, so that it never binds another pod of the same name, and an API
server binds a pod once: sending a binding again is harmless, and a conflict says that the pod is
bound already. So a binding without an answer is sent again by the writer; after a conflict the pod
is read to see whether it is on the node that was decided; only a definite refusal is a failure.
"""

from collections.abc import Callable
from http import HTTPStatus

from aliquot.dialects.tensor_fusion.annotations import GPU_IDS
from aliquot.engine import Bind, Pod
from aliquot.errors import ApiError
from aliquot.json import Body
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import PODS
from aliquot.kube.execution.writer import WRITE_SECONDS, Urgency, Write, Writer, is_retriable


class Binder:
    """Carries out `Bind` decisions; calls `bound` or `failed` with the outcome."""

    def __init__(
        self,
        client: Client,
        writer: Writer,
        bound: Callable[[Bind], None],
        failed: Callable[[Pod, str], None],
    ) -> None:
        self._client = client
        self._writer = writer
        self._bound = bound
        self._failed = failed

    def bind(self, decision: Bind) -> None:
        """Have the writer bind a pod."""

        async def run() -> None:
            await self._bind(decision)

        self._writer.add(Write(decision.pod.uid, "bind", Urgency.DECISION, run))

    async def _bind(self, decision: Bind) -> None:
        pod = decision.pod
        where = PODS.path(pod.namespace, pod.name, "binding")
        try:
            await self._client.post(where, _binding(decision), timeout=WRITE_SECONDS)
        except ApiError as error:
            conflict = error.code == HTTPStatus.CONFLICT
            if not conflict and is_retriable(error):
                raise
            if not conflict or not await self._is_bound(decision):
                self._failed(pod, error.message)
                return
        self._bound(decision)

    async def _is_bound(self, decision: Bind) -> bool:
        """Is the pod on the node that was decided?"""
        found = await read_pod(self._client, decision.pod)
        return found is not None and bool(found["spec"].get("nodeName") == decision.node)


def _binding(decision: Bind) -> Body:
    pod = decision.pod
    metadata: Body = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    if decision.devices:
        metadata["annotations"] = {GPU_IDS: ",".join(decision.devices)}
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": decision.node},
    }


async def read_pod(client: Client, pod: Pod) -> Body | None:
    """The pod as the API server has it now, for the binder and the evictor after a conflict.

    None if it was deleted, if another pod has its name, or if reading it is not allowed. A server
    that is busy or failing raises, so that the write is retried.
    """
    try:
        found: Body = await client.get(PODS.path(pod.namespace, pod.name), timeout=WRITE_SECONDS)
    except ApiError as error:
        busy = error.code == HTTPStatus.TOO_MANY_REQUESTS
        if busy or error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        return None
    return found if found["metadata"].get("uid") == pod.uid else None
