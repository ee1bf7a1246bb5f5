"""A fresh cluster to measure on: a server of its own, and its objects made over many connections.

Every measurement has one to itself, so that none finds what another left behind.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import msgspec

from aliquot.bench import envtest
from aliquot.bench.cluster import load
from aliquot.bench.envtest import Server
from aliquot.bench.process import Child, machine_cpu
from aliquot.dialects.core.documents import Body
from aliquot.dialects.crds import definitions
from aliquot.errors import ApiError
from aliquot.kube.api import access
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import CUSTOM, NAMESPACES, NODES, PODS, Resource

_AT_ONCE = 32
_SOON = 0.05
_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False
)
_QUOTAS = CUSTOM["elasticquotas.scheduling.x-k8s.io"]
_LEASES = "aliquot-system"
_NOT_YET = (HTTPStatus.NOT_FOUND, HTTPStatus.TOO_MANY_REQUESTS)
"""A kind is not served, or what is kept of it is not there yet."""


@contextmanager
def fresh_server() -> Iterator[tuple[Server, Path]]:
    """A server that knows nothing yet, the real one if it is here; and a folder to work in."""
    with ExitStack() as stack:
        made = tempfile.TemporaryDirectory(prefix="aliquot-", ignore_cleanup_errors=True)
        folder = Path(stack.enter_context(made))
        if envtest.assets() is None:
            server = stack.enter_context(envtest.embedded(folder / "server", keep=False))
        else:
            store = stack.enter_context(envtest.etcd(folder / "etcd"))
            server = stack.enter_context(envtest.real(folder / "server", store))
        yield server, folder


@dataclass(frozen=True, slots=True)
class Cluster:
    """A server with nodes and quotas, and a client of it."""

    server: Server
    folder: Path
    client: Client
    nodes: int

    def cpu(self) -> float:
        """Seconds of processor time that the API server and its store have used."""
        store = self.server.etcd
        return self.server.child.usage().cpu + (store.child.usage().cpu if store else 0.0)

    def cpu_of_others(self, scheduler: Child) -> float:
        """The same of everybody who has no part in the measurement."""
        return machine_cpu() - self.cpu() - scheduler.usage().cpu - time.process_time()

    async def create(
        self, pods: Iterable[Body], acknowledged: dict[str, float] | None = None
    ) -> float:
        """Create pods as fast as they are taken; how long that took.

        `acknowledged` learns when the server said yes to each.
        """
        began = time.perf_counter()
        await _create(self.client, PODS, pods, acknowledged)
        return time.perf_counter() - began

    async def run(self, pods: Iterable[Body]) -> None:
        """Have pods running from the start, spread over the nodes."""
        work = ((number, each) for number, each in enumerate(pods))

        async def worker() -> None:
            for number, pod in work:
                bound, status = load.running(pod, f"node-{number % self.nodes}")
                about = pod["metadata"]
                await _post(self.client, PODS, bound)
                where = PODS.path(about["namespace"], about["name"], "status")
                await self.client.patch(where, status)

        await _all(worker)


@asynccontextmanager
async def cluster(server: Server, folder: Path, nodes: int) -> AsyncIterator[Cluster]:
    """The server with so many nodes, and quotas for a few teams."""
    async with Client(access.find(server.kubeconfig), connections=_AT_ONCE) as client:
        await _define(client)
        await _create(client, NODES, load.nodes(nodes))
        spaces = [load.namespace(each) for each in (*load.teams(), _LEASES)]
        await _create(client, NAMESPACES, spaces)
        await _create(client, _QUOTAS, [load.quota(each, nodes) for each in load.teams()])
        yield Cluster(server, folder, client, nodes)


async def version(client: Client) -> str:
    """What the server calls its version."""
    said: str = (await client.get("/version"))["gitVersion"]
    return said


async def _define(client: Client) -> None:
    """Bring in the kinds that Kubernetes does not have; the embedded server has them already."""
    for body in definitions():
        try:
            await client.post(_DEFINITIONS.path(), body)
        except ApiError as error:
            if error.code != HTTPStatus.CONFLICT:
                raise
    for resource in CUSTOM.values():
        while not await _served(client, resource):
            await asyncio.sleep(_SOON)


async def _served(client: Client, resource: Resource) -> bool:
    try:
        await client.get(resource.path())
    except ApiError as error:
        if error.code in _NOT_YET:
            return False
        raise
    return True


async def _create(
    client: Client,
    resource: Resource,
    bodies: Iterable[Body],
    acknowledged: dict[str, float] | None = None,
) -> None:
    work = iter(bodies)

    async def worker() -> None:
        for body in work:
            await _post(client, resource, body)
            if acknowledged is not None:
                acknowledged[body["metadata"]["name"]] = time.perf_counter()

    await _all(worker)


async def _all(worker: Callable[[], Coroutine[None, None, None]]) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(worker())


async def _post(client: Client, resource: Resource, body: Body) -> None:
    """What the server says to it is not decoded: all that counts is that it says yes."""
    where = resource.path(body["metadata"].get("namespace"))
    await client.call("POST", where, msgspec.json.encode(body))
