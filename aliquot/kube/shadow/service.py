"""The shadow as a whole: its loop, its probes and metrics.

async with shadowing(find_access, settings, host, health_port) as shadow: ...
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from aliquot.collector import paused_collector
from aliquot.kube.api.access import Access
from aliquot.kube.api.client import Client
from aliquot.kube.intake.sharing_mode import one_policy
from aliquot.kube.observe.background_loop import BackgroundLoop
from aliquot.kube.observe.health import Health
from aliquot.kube.observe.metrics import Metrics
from aliquot.kube.observe.probes import Probes
from aliquot.kube.shadow.report import ShadowCollector
from aliquot.kube.shadow.shadow import Settings, Shadow

_CACHES = "caches"
_POLL_SECONDS = 0.05


@contextlib.asynccontextmanager
async def shadowing(
    find_access: Callable[[], Access], settings: Settings, host: str, health_port: int | None
) -> AsyncIterator[Shadow]:
    """Run a shadow for as long as the block lasts; an error of any part ends the block."""
    one_policy(settings.configuration)
    metrics, health = Metrics(), Health()
    health.expect(_CACHES)
    async with Client(find_access()) as client:
        shadow = Shadow(client, settings, metrics, health.beat)
        metrics.registry.register(ShadowCollector(shadow.comparison))
        work = []
        if health_port is not None:
            work.append(Probes(health, metrics.registry, health_port, host).run)
        background = BackgroundLoop(*work)
        async with background, asyncio.TaskGroup() as group:
            all_work = (background.failed(), _fill(shadow, health), shadow.intake.run())
            tasks = [group.create_task(each) for each in (*all_work, shadow.run())]
            try:
                yield shadow
            finally:
                for task in tasks:
                    task.cancel()


async def _fill(shadow: Shadow, health: Health) -> None:
    """Be ready once everything has been listed; until then, the garbage collector is off."""
    with paused_collector():
        while not shadow.intake.ready:
            await asyncio.sleep(_POLL_SECONDS)
    health.met(_CACHES)
