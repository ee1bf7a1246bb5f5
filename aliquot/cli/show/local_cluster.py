"""The local cluster of `aliquot up` as its user sees it: where it is, and the demo on it.

`up` imports this module only when it runs: it needs all of the server and of the control plane.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

import click

from aliquot.cli.drawing.signs import console as make_console
from aliquot.cli.show.dashboard import url
from aliquot.cli.show.live_view import LiveView
from aliquot.dashboard import service as page
from aliquot.dashboard.oracle import EngineOracle
from aliquot.kube.api.client import Client
from aliquot.kube.control import control_plane
from aliquot.local import demo
from aliquot.local.cluster import LocalCluster, local_cluster
from aliquot.questions.sources.origin import Origin
from aliquot.questions.sources.reach import Reach
from aliquot.server.app import Settings


@asynccontextmanager
async def shown_cluster(
    settings: Settings, own: control_plane.Settings | None, with_demo: bool, page_port: int | None
) -> AsyncIterator[None]:
    """Start the cluster, print how to reach it, and play the demo if asked to."""
    async with local_cluster(settings, own) as made, AsyncExitStack() as stack:
        if page_port is not None:
            oracle = EngineOracle(_origin(made, own))
            stack.callback(oracle.close)
            port = await stack.enter_async_context(_page(made, own, page_port, oracle))
            click.echo(f"page: {url('localhost', port)}")
        click.echo(f"kubeconfig: {made.server.kubeconfig}")
        click.echo(f"url: {made.server.url}")
        click.echo("roles: stored, not enforced; who has the kubeconfig may do everything")
        if with_demo:
            await stack.enter_async_context(_demo(made))
        yield


def _page(
    made: LocalCluster, own: control_plane.Settings | None, port: int, oracle: EngineOracle
) -> AbstractAsyncContextManager[int]:
    """The page in the browser, under the settings of the control plane."""
    chosen = page.Settings(port=port)
    if own is not None:
        deciding = own.scheduler
        chosen = page.Settings(deciding.configuration, deciding.policy, port=port)
    return page.dashboard_of(made.reach, chosen, oracle)


def _origin(made: LocalCluster, own: control_plane.Settings | None) -> Origin:
    policy = None if own is None else own.scheduler.policy
    return Origin(reach=Reach(made.server.kubeconfig), policy=policy)


@asynccontextmanager
async def _demo(made: LocalCluster) -> AsyncIterator[None]:
    """Play the demo, with the live view where stdout is a terminal."""
    look = f"KUBECONFIG={made.server.kubeconfig} kubectl get eq,pods -A -w"
    console = make_console()
    async with Client(made.reach(), connections=2) as client, asyncio.TaskGroup() as group:
        tasks = [group.create_task(demo.play(client))]
        if console.is_terminal and made.plane is not None:
            headline = f"{made.server.url}   look inside: {look}   stop: Ctrl-C"
            tasks.append(group.create_task(LiveView(made.plane, headline).run(console)))
        else:
            click.echo(f"look inside: {look}")
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
