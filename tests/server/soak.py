"""A soak of `aliquot up`: pods come and go at a steady rate, and every minute it is measured.

`python -m tests.server.soak MINUTES PODS_PER_SECOND` prints the table as it grows.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.build.manifests import pod, quota
from tests.server.client import Client
from tests.server.process import reaching, started

_LIVES = 6.0
"""Seconds from the creation of a pod to its deletion: at ten a second, 60 of 64 GPUs are asked."""
_TEAMS = ("a", "b")
_AT_ONCE = 16
"""Requests under way: a busy machine slows the load down, and does not pile up connections."""


@dataclass(frozen=True)
class Row:
    """The state of the process and of its data folder at a time."""

    minute: float
    pods: int
    running: int
    megabytes: float
    data: float
    answer: float
    """Seconds that a small request took."""

    def __str__(self) -> str:
        return (
            f"{self.minute:6.1f} {self.pods:7d} {self.running:8d} {self.megabytes:7.1f} "
            f"{self.data:8.1f} {self.answer * 1000:9.0f}"
        )


HEADER = "minute    pods  running  RSS MB  data MB  answer ms"


async def soak(folder: Path, minutes: float, rate: float, every: float) -> AsyncIterator[Row]:
    """Run the load, and yield a row so often, in minutes."""
    with started(folder, "--nodes", "8x8") as server:
        async with reaching(folder) as client, asyncio.TaskGroup() as group:
            await _teams(client)
            turns = asyncio.Semaphore(_AT_ONCE)
            began, number = time.monotonic(), 0
            for row in range(1, round(minutes / every) + 1):
                while time.monotonic() - began < row * every * 60:
                    number += 1
                    await turns.acquire()
                    group.create_task(_one(client, number, turns))
                    await asyncio.sleep(max(0, began + number / rate - time.monotonic()))
                yield await _row(client, server.pid, folder, row * every, number)


async def _teams(client: Client) -> None:
    for name in _TEAMS:
        await client.post("/api/v1/namespaces", {"metadata": {"name": name}})
        where = f"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{name}/elasticquotas"
        await client.post(where, quota(f"{name}/q", {"gpu": 32}, {"gpu": 64}))


async def _one(client: Client, number: int, turns: asyncio.Semaphore) -> None:
    """A pod's life, which begins with its turn.

    Two of three are of one team, which borrows; some of those are evicted.
    """
    team = _TEAMS[number % 3 == 0]
    where = f"/api/v1/namespaces/{team}/pods"
    body: dict[str, Any] = pod(f"{team}/p-{number}", {"gpu": 1}, schedulerName="aliquot")
    body["spec"]["terminationGracePeriodSeconds"] = 1
    code, said = await client.post(where, body)
    turns.release()
    assert code == 201, said
    await asyncio.sleep(_LIVES)
    async with turns:
        code, said = await client.delete(f"{where}/p-{number}")
    assert code in (200, 202, 404), said


async def _row(client: Client, pid: int, folder: Path, minute: float, pods: int) -> Row:
    began = time.monotonic()
    code, _ = await client.get("/readyz")
    answer = time.monotonic() - began
    assert code == 200
    _, found = await client.get("/api/v1/pods", fieldSelector="status.phase=Running")
    status = Path(f"/proc/{pid}/status").read_text()
    kilobytes = next(int(line.split()[1]) for line in status.splitlines() if "VmRSS" in line)
    data = sum(each.stat().st_size for each in folder.iterdir())
    return Row(minute, pods, len(found["items"]), kilobytes / 1024, data / 2**20, answer)


async def _print(minutes: float, rate: float) -> None:
    print(HEADER, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        async for row in soak(Path(folder), minutes, rate, 1.0):
            print(row, flush=True)


if __name__ == "__main__":
    asyncio.run(_print(float(sys.argv[1]), float(sys.argv[2])))
