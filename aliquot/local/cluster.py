"""The cluster of `aliquot up`: API server, simulated nodes, webhook and control plane, one process.

The control plane is the one that runs in production; it reaches the API server over HTTP, by the
kubeconfig that users get. Nothing here prints: what users see of the cluster is the commands' part.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from aliquot.dialects.configuration import Configuration, Profile
from aliquot.dialects.core.pods import DEFAULT_SCHEDULER
from aliquot.errors import InputError
from aliquot.json import Body
from aliquot.kube.api import access
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import CONFIG_MAPS, NAMESPACES
from aliquot.kube.control import control_plane as plane
from aliquot.kube.control import scheduler
from aliquot.kube.control.control_plane import ControlPlane, control_plane
from aliquot.kube.install.workloads import published_configuration
from aliquot.kube.webhook import app as webhook
from aliquot.local import demo
from aliquot.local.unanswered_pods import UnansweredPods
from aliquot.server.admission.webhooks import LocalService
from aliquot.server.app import Server, Settings, running
from aliquot.server.controllers import simulated_nodes
from aliquot.validation import files

Reach = partial[access.Access]
"""Finds the access to the cluster, as any client does."""


@dataclass(frozen=True, slots=True)
class LocalCluster:
    """A cluster that runs: its API server, its control plane if it has one, and how to reach it."""

    server: Server
    plane: ControlPlane | None
    reach: Reach


def plane_settings(
    configuration: Configuration, policy: str | None, host: str, health_port: int | None
) -> plane.Settings:
    """The settings of a control plane that is the only one: it needs no Lease.

    Pods of Kubernetes' own scheduler are scheduled as well, since there is none.
    """
    deciding = scheduler.Settings(_with_default_scheduler(configuration), policy)
    return plane.Settings(deciding, lease=None, host=host, health_port=health_port)


def _with_default_scheduler(configuration: Configuration) -> Configuration:
    profiles = configuration.profiles
    if not profiles or any(each.scheduler_name == DEFAULT_SCHEDULER for each in profiles):
        return configuration
    added = Profile(scheduler_name=DEFAULT_SCHEDULER, policy=profiles[0].policy)
    return msgspec.structs.replace(configuration, profiles=[*profiles, added])


async def _publish(client: Client, own: plane.Settings) -> None:
    """Write the ConfigMap that an installation has, by which questions know the Configuration."""
    settings, policy = own.scheduler.configuration, own.scheduler.policy
    if policy is not None:
        profiles = [msgspec.structs.replace(each, policy=policy) for each in settings.profiles]
        settings = msgspec.structs.replace(settings, profiles=profiles)
    body = published_configuration(msgspec.to_builtins(settings), own.namespace)
    await demo.make(client, CONFIG_MAPS, body)
    await client.put(CONFIG_MAPS.path(own.namespace, body["metadata"]["name"]), body)


def node_manifests(nodes: str, gpu_model: str) -> list[Body]:
    """Nodes by count and GPUs each, such as 8x8, or the Nodes of a file or folder."""
    if not Path(nodes).exists():
        return simulated_nodes.nodes(nodes, gpu_model)
    found = [each for each in files.parse(nodes) if each.body.get("kind") == "Node"]
    if not found:
        raise InputError(nodes, "", "holds no Nodes")
    return [each.body for each in found]


@asynccontextmanager
async def local_cluster(
    settings: Settings, own: plane.Settings | None
) -> AsyncIterator[LocalCluster]:
    """The API server, and unless `own` is None the webhook and the control plane."""
    async with running(settings) as server, AsyncExitStack() as stack:
        reach = partial(access.find, server.kubeconfig)
        made = None
        if own is not None:
            await stack.enter_async_context(_admission(server, reach, own))
            made = await stack.enter_async_context(control_plane(reach, own))
            await stack.enter_async_context(_unanswered(server, own))
        yield LocalCluster(server, made, reach)


@asynccontextmanager
async def _unanswered(server: Server, own: plane.Settings) -> AsyncIterator[None]:
    """Tell the pods of other schedulers which scheduler names there are."""
    names = [each.scheduler_name for each in own.scheduler.configuration.profiles]
    task = asyncio.create_task(UnansweredPods(server.api, names).worker.run())
    try:
        yield
    finally:
        task.cancel()


@asynccontextmanager
async def _admission(server: Server, reach: Reach, own: plane.Settings) -> AsyncIterator[None]:
    """The admission webhook, with the Configuration and the policy of the control plane.

    It is registered as an installation registers it, behind a Service, so that `aliquot manifests`
    and the chart can be applied over it; this process answers for that Service.
    """
    settings = webhook.Settings(
        own.scheduler.configuration, own.scheduler.policy, own.namespace, registers=True
    )
    async with Client(reach(), connections=4) as client:
        await demo.make(client, NAMESPACES, demo.namespace(own.namespace))
        await _publish(client, own)
        async with webhook.webhook(client, settings) as started:
            local = LocalService(
                lambda: f"https://{settings.host}:{started.port}", settings.names[0]
            )
            server.api.admission.webhooks.local_services[settings.service] = local
            await started.ready.wait()
            yield
