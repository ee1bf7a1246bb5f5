"""A control plane in a process of its own, to be killed: its Lease is short, and it tells all.

    python -m tests.cluster.plane.leader KUBECONFIG

Each line that it prints is a time and a word: `leads` when it begins to decide, `rests` when it no
longer does, `writes` for each write.
"""

import asyncio
import sys
import time
from functools import partial
from pathlib import Path

from aliquot.dialects.configuration import Configuration
from aliquot.kube.api import access
from aliquot.kube.control import control_plane as plane
from aliquot.kube.control import scheduler
from aliquot.kube.control.control_plane import control_plane
from aliquot.kube.leader.leader_rules import Timing
from tests.cluster.plane.between import Send, standing

TIMING = Timing(duration=2.0, deadline=1.5, retry=0.2)
_LOOK = 0.01


class Teller:
    """Tells of each write."""

    async def call(self, method: str, path: str, send: Send) -> bytes:
        if method != "GET" and "/leases" not in path:
            tell("writes", f"{method} {path}")
        return await send()


def tell(*words: str) -> None:
    print(time.time(), *words, flush=True)


async def lead(kubeconfig: Path) -> None:
    """Run until killed."""
    settings = plane.Settings(
        scheduler.Settings(Configuration()), namespace="default", lease="plane", timing=TIMING
    )
    reach, led = partial(access.find, kubeconfig, None), False
    with standing(Teller()):
        async with control_plane(reach, settings) as made:
            while True:
                leads = made.scheduler.engine is not None and made.leads()
                if leads != led:
                    tell("leads" if leads else "rests")
                led = leads
                await asyncio.sleep(_LOOK)


if __name__ == "__main__":
    asyncio.run(lead(Path(sys.argv[1])))
