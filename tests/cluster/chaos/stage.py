"""The stage of a campaign: a server that can be restarted, two replicas behind proxies, load."""

import asyncio
import random
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from pathlib import Path

import yaml

from aliquot.bench.envtest import free_ports
from aliquot.dialects.crds import definitions
from aliquot.errors import ApiError, UnreachableError
from aliquot.json import Body
from aliquot.kube.api import access
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import (
    CUSTOM,
    EVENTS,
    NODES,
    PODS,
    Resource,
)
from tests.build.manifests import namespace
from tests.cluster.api import servers
from tests.cluster.chaos.checker import Checker
from tests.cluster.chaos.feed import Feed
from tests.cluster.chaos.load import Load
from tests.cluster.chaos.proxy import Proxy
from tests.cluster.chaos.replica import Replica
from tests.cluster.chaos.world import TEAMS, World
from tests.cluster.plane.cluster import resource, resource_of

_PATIENCE = 120.0
_LEASES = "aliquot-system"
_CONFIGURATION = {
    "apiVersion": "config.aliquot.dev/v1alpha1",
    "kind": "Configuration",
    "hierarchy": {"revokeAfter": "2s"},
    "eviction": {"holdFor": "20s"},
}
"""Waits that are minutes by default end within a round."""


class RestartableServer:
    """An API server over one state; all that starts and ends it runs in one thread.

    Linux ends a server with the thread that started it.
    """

    def __init__(self, kind: str, folder: Path) -> None:
        self.kubeconfig = folder / "server" / "kubeconfig"
        self._real = kind == "real"
        self._folder = folder
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._store: servers.Store | None = None
        self._all, self._own = ExitStack(), ExitStack()
        self._server: servers.Server | None = None

    async def start(self) -> None:
        """Start it."""
        await self._do(self._start)

    async def restart(self) -> None:
        """Kill it, and start it again over the same state, of which it has forgotten the past."""
        await self._do(self._restart)

    async def stop(self) -> None:
        """End it."""
        await self._do(self._stop)
        self._thread.shutdown()

    def compact(self) -> None:
        """The store forgets older versions, where it can be told to."""
        if self._store is not None:
            servers.compact(self._store)

    async def _do(self, work: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _start(self) -> None:
        if self._real:
            if self._store is None:
                self._store = self._all.enter_context(servers.etcd(self._folder / "etcd"))
            starting = servers.real(self._folder / "server", self._store)
        else:
            starting = servers.embedded(self._folder / "server")
        self._server = self._own.enter_context(starting)

    def _restart(self) -> None:
        assert self._server is not None
        self._server.child.process.kill()
        self._own.close()
        self.compact()
        self._start()

    def _stop(self) -> None:
        self._own.close()
        self._all.close()


class Stage:
    """Everything that a fault can touch."""

    def __init__(
        self, world: World, server: RestartableServer, folder: Path, dice: random.Random
    ) -> None:
        self.world = world
        self.dice = dice
        self.replicas: list[Replica] = []
        self.proxies: dict[str, Proxy] = {}
        """By the name of the replica."""
        self.client: Client
        self.feed: Feed
        self.load: Load
        self.checker: Checker
        self._server = server
        self._folder = folder
        self._config = folder / "configuration.yaml"
        self._starts = 0
        self._quotas: Resource = resource(world.quota_kind)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Stage"]:
        """Set it up, and let load and schedulers run for as long as the block lasts."""
        self._config.write_text(yaml.safe_dump(_CONFIGURATION))
        async with AsyncExitStack() as stack:
            reach = access.find(self._server.kubeconfig)
            self.client = await stack.enter_async_context(Client(reach, connections=64))
            await self._lay()
            kinds = (PODS, NODES, self._quotas)
            self.feed = Feed(self.client, kinds)
            self.load = Load(self.world, self.client, self.feed, random.Random(self.dice.random()))
            self.checker = Checker(self.world, self.load.deleted)
            self.feed.listeners.append(self.checker.hear)
            tasks = [asyncio.create_task(self.feed.run())]
            try:
                await self.feed.listed()
                for name in ("a", "b"):
                    proxy = Proxy(self._server.kubeconfig, random.Random(self.dice.random()))
                    self.proxies[name] = await stack.enter_async_context(proxy.serving())
                    self._start(name)
                tasks.append(asyncio.create_task(self.load.run()))
                self._tasks = tasks
                yield self
            finally:
                for each in tasks:
                    each.cancel()
                for replica in self.replicas:
                    replica.wake()
                    replica.kill()

    def check(self) -> None:
        """Fail where load or feed have ended: the campaign would see nothing."""
        for each in self._tasks:
            if each.done():
                each.result()

    async def leader(self) -> Replica:
        """The replica that leads, as soon as one does."""
        end = time.monotonic() + _PATIENCE
        while True:
            for each in self.replicas:
                if each.leads:
                    return each
            logs = [each.log.read_text()[-2000:] for each in self.replicas]
            assert time.monotonic() < end, f"none leads: {logs}"
            await asyncio.sleep(0.1)

    def replace(self, dead: Replica) -> None:
        """Start another replica in place of one that was killed."""
        self.replicas.remove(dead)
        self._start(dead.name.partition("-")[0])

    def _start(self, slot: str) -> None:
        self._starts += 1
        kubeconfig = self.proxies[slot].write_kubeconfig(self._folder / f"{slot}.kubeconfig")
        name = f"{slot}-{self._starts}"
        (port,) = free_ports(1)
        self.replicas.append(Replica(name, kubeconfig, self._config, self._folder, port))

    # What faults do.

    def proxies_of(self, name: str | None) -> list[Proxy]:
        """The proxy of a replica; without a name, all."""
        slot = None if name is None else name.partition("-")[0]
        return [proxy for each, proxy in self.proxies.items() if slot in (None, each)]

    def compact(self) -> None:
        """The store forgets older versions."""
        self._server.compact()

    async def restart_server(self) -> None:
        """Kill the API server; it comes back with the same objects."""
        await self._server.restart()

    async def lose_node(self, name: str) -> None:
        """A node is deleted, and its pods with it."""
        self.load.lost_nodes.add(name)
        await self._insist(lambda: self.client.delete(NODES.path(None, name)))
        await self._until(lambda: not self._pods_on(name))

    async def return_node(self, name: str) -> None:
        """It is there again."""
        body = next(each for each in self.world.nodes() if each["metadata"]["name"] == name)
        await self._until(lambda: not self._pods_on(name))
        self.load.lost_nodes.discard(name)
        await self._insist(lambda: self.client.post(NODES.path(), body))

    async def set_ready(self, name: str, status: str) -> None:
        """A node says that it is ready, or not."""
        ready = {"type": "Ready", "status": status, "reason": "Chaos", "message": ""}
        change = {"status": {"conditions": [ready]}}
        where = NODES.path(None, name, "status")
        await self._insist(lambda: self.client.patch(where, change, "strategic"))

    async def edit_quotas(self) -> None:
        """Two teams of one parent come to have other bounds; their mins add up to the same."""
        first, second = self.dice.choice((TEAMS[:2], TEAMS[2:]))
        high = {team: self.dice.randint(40, 70) for team in (first, second)}
        if self.world.name == "queues":
            for team in (first, second):
                await self._edit(team, {"capability": {"cpu": high[team]}})
            return
        both = sum(int(self.checker.bounds(team)[0]) for team in (first, second))
        low = self.dice.randint(8, both - 8)
        for team, amount in ((first, low), (second, both - low)):
            await self._edit(team, {"min": {"cpu": amount}, "max": {"cpu": high[team]}})

    async def _edit(self, team: str, spec: Body) -> None:
        where = self._quotas.path(team if self._quotas.namespaced else None, team)
        await self._insist(lambda: self.client.patch(where, {"spec": spec}))

    # What is looked at.

    async def events(self) -> list[Body]:
        """All Events there are."""
        with suppress(ApiError, UnreachableError):
            found: list[Body] = (await self.client.get(EVENTS.path()))["items"]
            return found
        return []

    async def metrics(self, replica: Replica) -> str:
        """The metrics of a replica; empty if it does not answer."""

        def read() -> str:
            url = f"http://127.0.0.1:{replica.port}/metrics"
            with urllib.request.urlopen(url, timeout=10) as answer:
                text: bytes = answer.read()
                return text.decode()

        try:
            return await asyncio.to_thread(read)
        except OSError:
            return ""

    def _pods_on(self, name: str) -> list[Body]:
        pods = self.feed.objects["Pod"].values()
        return [each for each in pods if each["spec"].get("nodeName") == name]

    async def _until(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + _PATIENCE
        while not holds():
            assert time.monotonic() < end, "the harness waits in vain"
            await asyncio.sleep(0.1)

    async def _insist(self, write: Callable[[], Awaitable[object]]) -> None:
        """Write, also where the server is away for a while."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            try:
                await write()
                return
            except UnreachableError:
                pass
            except ApiError as error:
                if error.code in (404, 409):
                    return
            await asyncio.sleep(0.3)
        raise AssertionError("the server stays away")

    async def _create(self, body: Body) -> None:
        where = resource_of(body).path(body["metadata"].get("namespace"))
        await self._insist(lambda: self.client.post(where, body))

    async def _lay(self) -> None:
        """The kinds, the namespaces and the objects of the world."""
        for body in definitions():
            await self._create(body)
        for kind in CUSTOM.values():
            await self._until_served(kind)
        for name in (*TEAMS, _LEASES):
            await self._create(namespace(name))
        for body in self.world.objects():
            await self._create(body)

    async def _until_served(self, kind: Resource) -> None:
        end = time.monotonic() + _PATIENCE
        while True:
            with suppress(ApiError):
                await self.client.get(kind.path())
                return
            assert time.monotonic() < end, kind
            await asyncio.sleep(0.1)
