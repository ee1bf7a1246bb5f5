"""A bare binder: binds pods as fast as the API server takes it, and decides nothing.

    python -m aliquot.bench.cluster.bare_binder KUBECONFIG SCHEDULER_NAME

It lists nodes and pods once, and binds the pods to the nodes in turn, over as many connections as
Aliquot writes with. What it reaches is the limit for any scheduler that binds pods one by one: the
rest is what deciding, watching and telling users costs.
"""

import asyncio
import sys
from itertools import cycle
from pathlib import Path
from typing import Any

from aliquot.bench.cluster.scheduler_process import SchedulerProcess
from aliquot.kube.api import access
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import NODES, PODS

_AT_ONCE = 32
"""As Aliquot's writer by default."""


def bare_binder(scheduler_name: str) -> SchedulerProcess:
    """The bare binder, for pods of this scheduler."""

    def command(file: Path, _: Path, __: int) -> list[str]:
        return [sys.executable, "-m", bare_binder.__module__, str(file), scheduler_name]

    return SchedulerProcess("a bare binder", scheduler_name, command, "http")


async def _bind_all(file: Path, scheduler_name: str) -> None:
    async with Client(access.find(file), connections=_AT_ONCE) as client:
        nodes = cycle([each["metadata"]["name"] for each in await _list(client, NODES.path())])
        found = await _list(client, PODS.path())
        waiting = (
            each["metadata"]
            for each in found
            if each["spec"]["schedulerName"] == scheduler_name and not each["spec"].get("nodeName")
        )

        async def worker() -> None:
            for about in waiting:
                metadata = {key: about[key] for key in ("name", "namespace", "uid")}
                body = {
                    "apiVersion": "v1",
                    "kind": "Binding",
                    "metadata": metadata,
                    "target": {"apiVersion": "v1", "kind": "Node", "name": next(nodes)},
                }
                where = PODS.path(about["namespace"], about["name"], "binding")
                await client.call("POST", where, body)

        await asyncio.gather(*(worker() for _ in range(_AT_ONCE)))


async def _list(client: Client, path: str) -> list[Any]:
    items: list[Any] = (await client.get(path, timeout=120))["items"]
    return items


async def _run(file: Path, scheduler_name: str) -> None:
    await _bind_all(file, scheduler_name)
    await asyncio.Event().wait()  # as a scheduler, it goes on until it is stopped


if __name__ == "__main__":
    asyncio.run(_run(Path(sys.argv[1]), sys.argv[2]))
