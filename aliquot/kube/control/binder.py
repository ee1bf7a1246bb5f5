"""Binds pods to nodes, and finds out what became of a binding that nobody answered.

A binding names the pod by its uid, so that it never meets another pod of the same name, and an API
server binds a pod once: to send it again is harmless, and a refusal tells that it is bound. So what
may have been carried out is sent again until there is an answer (the writer sees to that), and only
a clear no is a failure.
"""

from collections.abc import Callable

from aliquot.dialects.tensor_fusion.annotations import GPU_IDS
from aliquot.engine import Bind, Pod
from aliquot.errors import ApiError
from aliquot.json import Body
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import PODS
from aliquot.kube.control.writer import SECONDS, Urgency, Write, Writer, passes

_CONFLICT = 409


class Binder:
    """Carries out `Bind`s. `bound` and `failed` are told how it went."""

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
        """Have a pod bound."""

        async def run() -> None:
            await self._bind(decision)

        self._writer.add(Write(decision.pod.uid, "bind", Urgency.DECISION, run))

    async def _bind(self, decision: Bind) -> None:
        pod = decision.pod
        where = PODS.path(pod.namespace, pod.name, "binding")
        try:
            await self._client.post(where, _binding(decision), timeout=SECONDS)
        except ApiError as error:
            if error.code != _CONFLICT and passes(error):
                raise
            if error.code != _CONFLICT or not await self._is_there(decision):
                self._failed(pod, error.message)
                return
        self._bound(decision)

    async def _is_there(self, decision: Bind) -> bool:
        """Is the pod on the node that it was to go to?"""
        found = await look_up(self._client, decision.pod)
        return found is not None and bool(found["spec"].get("nodeName") == decision.node)


def _binding(decision: Bind) -> Body:
    pod = decision.pod
    about: Body = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    if decision.devices:
        about["annotations"] = {GPU_IDS: ",".join(decision.devices)}
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": about,
        "target": {"apiVersion": "v1", "kind": "Node", "name": decision.node},
    }


_MANY = 429


async def look_up(client: Client, pod: Pod) -> Body | None:
    """The pod as it is now; None if it is gone, or another has its name, or we may not know."""
    try:
        found: Body = await client.get(PODS.path(pod.namespace, pod.name), timeout=SECONDS)
    except ApiError as error:
        if error.code == _MANY or error.code >= 500:
            raise
        return None
    return found if found["metadata"].get("uid") == pod.uid else None
