"""A fresh cluster to measure on: an API server, nodes, quotas, and pods created concurrently.

Every measurement has one of its own, so that none finds the objects of another.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Literal, get_args

import msgspec

from aliquot.bench import envtest
from aliquot.bench.cluster import load
from aliquot.bench.envtest import Server
from aliquot.bench.process import Child, machine_cpu
from aliquot.dialects.crds import definitions
from aliquot.errors import ApiError, InputError
from aliquot.json import Body
from aliquot.kube.api import access
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import CUSTOM, NAMESPACES, NODES, PODS, Resource

_AT_ONCE = 32
"""Concurrent requests: enough to keep an API server busy from one client."""
_SOON = 0.05
"""Seconds between two looks whether a new kind is served."""
_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False
)
_QUOTAS = CUSTOM["elasticquotas.scheduling.x-k8s.io"]
_LEASES = "aliquot-system"
_NOT_YET = (HTTPStatus.NOT_FOUND, HTTPStatus.TOO_MANY_REQUESTS)
"""A kind is not served yet, or its storage is not ready."""


ServerKind = Literal["real", "embedded"]
SERVER_KINDS: tuple[ServerKind, ...] = get_args(ServerKind)


def chosen_server(command: str, kind: ServerKind | None) -> tuple[bool, str]:
    """Is the real server asked for, or found where nothing is said? And its name and version."""
    real = envtest.assets() is not None if kind is None else kind == "real"
    if real and envtest.assets() is None:
        raise InputError(command, "--server", envtest.MISSING)
    return real, str(envtest.version()) if real else "the embedded server"


@contextmanager
def fresh_server(real: bool | None = None) -> Iterator[tuple[Server, Path]]:
    """An empty API server, and a working folder.

    Without a choice, it is kube-apiserver if its binaries are found, else the embedded one.
    """
    with ExitStack() as stack:
        made = tempfile.TemporaryDirectory(prefix="aliquot-", ignore_cleanup_errors=True)
        folder = Path(stack.enter_context(made))
        if not (envtest.assets() is not None if real is None else real):
            server = stack.enter_context(envtest.embedded(folder / "server", keep=False))
        else:
            store = stack.enter_context(envtest.etcd(folder / "etcd"))
            server = stack.enter_context(envtest.real(folder / "server", store))
        yield server, folder


@dataclass(frozen=True, slots=True)
class Cluster:
    """An API server with nodes and quotas, and a client of it."""

    server: Server
    folder: Path
    client: Client
    nodes: int

    def cpu(self) -> float:
        """Seconds of processor time that the API server and its store have used."""
        store = self.server.etcd
        return self.server.child.usage().cpu + (store.child.usage().cpu if store else 0.0)

    def cpu_of_others(self, scheduler: Child) -> float:
        """The same of all processes that are not measured; this one and the scheduler excluded."""
        return machine_cpu() - self.cpu() - scheduler.usage().cpu - time.process_time()

    async def create(
        self, pods: Iterable[Body], acknowledged: dict[str, float] | None = None
    ) -> float:
        """Create pods as fast as the server accepts them; the seconds it took.

        The time of each response is written into `acknowledged`.
        """
        began = time.perf_counter()
        await create_all(self.client, PODS, pods, acknowledged)
        return time.perf_counter() - began

    async def run(self, pods: Iterable[Body]) -> None:
        """Create pods that run already, spread over the nodes."""
        work = ((number, each) for number, each in enumerate(pods))

        async def worker() -> None:
            for number, pod in work:
                bound, status = load.running(pod, f"node-{number % self.nodes}")
                about = pod["metadata"]
                await _post(self.client, PODS, bound)
                where = PODS.path(about["namespace"], about["name"], "status")
                await self.client.patch(where, status)

        await _run_workers(worker)


@asynccontextmanager
async def cluster(server: Server, folder: Path, nodes: int) -> AsyncIterator[Cluster]:
    """The server with so many nodes, and quotas of a few teams."""
    async with Client(access.find(server.kubeconfig), connections=_AT_ONCE) as client:
        await define(client)
        await create_all(client, NODES, load.nodes(nodes))
        spaces = [load.namespace(each) for each in (*load.teams(), _LEASES)]
        await create_all(client, NAMESPACES, spaces)
        await create_all(client, _QUOTAS, [load.quota(each, nodes) for each in load.teams()])
        yield Cluster(server, folder, client, nodes)


async def version(client: Client) -> str:
    """The gitVersion of the server."""
    found: str = (await client.get("/version"))["gitVersion"]
    return found


async def define(client: Client) -> None:
    """Create the CustomResourceDefinitions; the embedded server has them already."""
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


async def create_all(
    client: Client,
    resource: Resource,
    bodies: Iterable[Body],
    acknowledged: dict[str, float] | None = None,
) -> None:
    """Create objects, many at the same time; the time of each answer goes to `acknowledged`."""
    work = iter(bodies)

    async def worker() -> None:
        for body in work:
            await _post(client, resource, body)
            if acknowledged is not None:
                acknowledged[body["metadata"]["name"]] = time.perf_counter()

    await _run_workers(worker)


async def create_in_time(
    client: Client, resource: Resource, work: Iterable[tuple[float, Body]]
) -> dict[str, tuple[float, float]]:
    """Create each object at its time; by name, when it was sent and when that was answered."""
    rest, times = iter(work), dict[str, tuple[float, float]]()

    async def worker() -> None:
        for at, body in rest:
            await asyncio.sleep(at - time.perf_counter())
            sent = time.perf_counter()
            await _post(client, resource, body)
            times[body["metadata"]["name"]] = sent, time.perf_counter()

    await _run_workers(worker)
    return times


async def _run_workers(worker: Callable[[], Coroutine[None, None, None]]) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(worker())


async def _post(client: Client, resource: Resource, body: Body) -> None:
    """Create an object; the response is not decoded, to save CPU."""
    where = resource.path(body["metadata"].get("namespace"))
    await client.call("POST", where, msgspec.json.encode(body))
