"""The embedded API server as one object: built, bootstrapped, started, and stopped cleanly.

`async with running(Settings(...)) as server:` is all that a test or a command needs.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from aliquot.dialects.core.storage.volumes import STANDARD_CLASS
from aliquot.dialects.crds import definitions
from aliquot.dialects.priorities import SYSTEM
from aliquot.json import Body, fresh
from aliquot.listener import Limits, listening
from aliquot.server.admission.admission import Admission
from aliquot.server.api import Api
from aliquot.server.controllers import simulated_nodes
from aliquot.server.controllers.all_controllers import controllers
from aliquot.server.credentials import Credentials, credentials, write_kubeconfig
from aliquot.server.http.bodies import LIMITS
from aliquot.server.http.handler import Handler
from aliquot.server.http.options import WriteOptions
from aliquot.server.http.verbs import Verbs
from aliquot.server.kinds.definitions import follow
from aliquot.server.kinds.registry import Registry
from aliquot.server.rules.metadata import timestamp
from aliquot.server.storage.log import Log
from aliquot.server.storage.store import Store
from aliquot.server.storage.upkeep import EVENT_SECONDS, Upkeep

_GRACE = 2.0
"""Seconds that open requests get when the server stops; a watch would never end by itself."""
_BACKLOG = 1024
"""Connections that may wait to be accepted: above the default of 128, for many clients at once."""
_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
"""The namespaces that every cluster has from its start."""

_OWN_WRITES = WriteOptions(manager="kube-apiserver")


_RBAC = "rbac.authorization.k8s.io"
_KUBERNETES: Body = {
    "kind": "Service",
    "metadata": {
        "name": "kubernetes",
        "namespace": "default",
        "labels": {"component": "apiserver", "provider": "kubernetes"},
    },
    "spec": {"ports": [{"name": "https", "port": 443, "targetPort": 6443}]},
}
"""The Service of the API server itself."""
_ADMIN: Body = {
    "kind": "ClusterRole",
    "metadata": {"name": "cluster-admin"},
    "rules": [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ],
}
_ADMINS: Body = {
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "cluster-admin"},
    "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": "system:masters"}],
}
"""The role, and who has it, that the holder of the token has on a cluster."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Where a server keeps its data, where it listens, and what it simulates."""

    data: Path | None = None
    """The data folder; without it, a temporary one."""
    kubeconfig: Path | None = None
    """Where to write the kubeconfig; without it, into the data folder."""
    host: str = "127.0.0.1"
    port: int = 0
    """0: any free port."""
    controllers: bool = True
    """Run the workload controllers, garbage collection and the kubelets of simulated nodes?"""
    nodes: tuple[Body, ...] = ()
    """Nodes to create and to run the kubelets of."""
    event_seconds: float = EVENT_SECONDS
    """How long an Event lives after its last write."""
    limits: Limits = LIMITS
    """How long clients may take to send their requests, and how many there may be."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server that is running."""

    url: str
    kubeconfig: Path
    credentials: Credentials
    api: Api


@asynccontextmanager
async def running(settings: Settings | None = None) -> AsyncIterator[Server]:
    """Run a server for as long as the block lasts."""
    settings = settings or Settings()
    with ExitStack() as stack:
        folder = settings.data
        if folder is None:
            made = stack.enter_context(tempfile.TemporaryDirectory(prefix="aliquot-"))
            folder = Path(made)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = credentials(folder, settings.host)
        store = Store(Log(folder / "objects.sqlite", lasting=settings.data is not None))
        registry = Registry()
        follow(store, registry)
        api = Api(store, registry, Admission(store))
        upkeep = asyncio.create_task(Upkeep(store, settings.event_seconds).run())
        try:
            await _bootstrap(api, settings.nodes)
            if settings.controllers:
                await _create_missing(api, "StorageClass", fresh(STANDARD_CLASS))
            running_controllers = controllers(api) if settings.controllers else nullcontext()
            async with running_controllers, _listen(api, found, settings) as port:
                host = f"[{settings.host}]" if ":" in settings.host else settings.host
                url = f"https://{host}:{port}"
                file = settings.kubeconfig or folder / "kubeconfig"
                write_kubeconfig(file, url, found)
                yield Server(url, file, found, api)
        finally:
            upkeep.cancel()
            await asyncio.gather(upkeep, return_exceptions=True)
            await api.admission.close()
            await store.close()


@asynccontextmanager
async def _listen(api: Api, found: Credentials, settings: Settings) -> AsyncIterator[int]:
    http_server = web.Server(Handler(Verbs(api), found.token).handle, access_log=None)
    runner = web.ServerRunner(http_server, shutdown_timeout=_GRACE)
    place = (settings.host, settings.port, settings.limits)
    async with listening(runner, *place, found.context(), _BACKLOG) as port:
        yield port


async def _bootstrap(api: Api, nodes: Sequence[Body]) -> None:
    """Create the objects that every cluster has, and the nodes; what exists stays as it is."""
    for name in _NAMESPACES:
        await _create_missing(api, "Namespace", {"metadata": {"name": name}})
    for name, value in SYSTEM.items():
        await _create_missing(api, "PriorityClass", {"metadata": {"name": name}, "value": value})
    for body in (_KUBERNETES, _ADMIN, _ADMINS):
        await _create_missing(api, body["kind"], fresh(body))
    for definition in definitions():
        await _create_missing(api, "CustomResourceDefinition", definition)
    for node in nodes:
        await _create_missing(api, "Node", simulated_nodes.alive(node, timestamp()))


async def _create_missing(api: Api, kind_name: str, body: Body) -> None:
    kind, namespace = api.kind(kind_name), body["metadata"].get("namespace")
    if api.store.get(kind.storage, namespace or "", body["metadata"]["name"]) is None:
        await api.create(kind, namespace, body, _OWN_WRITES)
