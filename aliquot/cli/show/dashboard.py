"""The page in the browser as its user starts it: where it is."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

import click

from aliquot.dashboard.oracle import EngineOracle
from aliquot.dashboard.service import Settings, dashboard_of, dashboard_of_files
from aliquot.kube.api import access
from aliquot.questions.sources.origin import Origin
from aliquot.validation.inputs import load_configuration

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_OPEN = (
    "warning: without --auth kubernetes, all who reach {} are shown everything that this "
    "kubeconfig, or file, shows"
)


@asynccontextmanager
async def shown_dashboard(
    origin: Origin, host: str, port: int, protected: bool
) -> AsyncIterator[None]:
    """Serve the page, and print its URL."""
    configuration = load_configuration(origin.config)
    namespace = origin.reach.namespace
    settings = Settings(configuration, origin.policy, namespace, host, port, protected)
    oracle = EngineOracle(origin)
    try:
        async with _page(origin, settings, oracle) as found:
            click.echo(f"page: {url(host, found)}")
            if host not in _LOOPBACK and not protected:
                click.echo(_OPEN.format(host), err=True)
            yield
    finally:
        oracle.close()


def _page(
    origin: Origin, settings: Settings, oracle: EngineOracle
) -> AbstractAsyncContextManager[int]:
    if origin.paths:
        return dashboard_of_files(origin.read(), settings, oracle)
    reach = partial(access.find, origin.reach.kubeconfig, origin.reach.context)
    return dashboard_of(reach, settings, oracle)


def url(host: str, port: int) -> str:
    """Where a browser on this machine finds the page."""
    shown = {"0.0.0.0": "localhost", "::": "localhost", "127.0.0.1": "localhost"}.get(host, host)
    return f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/"
