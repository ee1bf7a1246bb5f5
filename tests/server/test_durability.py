"""Every write that was acknowledged is there after kill -9, and versions never go back."""

import asyncio
import signal
from pathlib import Path

import aiohttp

from tests.campaign import length
from tests.server.client import MAPS, Client, config
from tests.server.process import reaching, started

_ROUNDS = length(3, 100)
_BARE = ("--no-scheduler", "--nodes", "0")


def test_acknowledged_writes_survive_being_killed(tmp_path: Path) -> None:
    asyncio.run(_story(tmp_path))


def test_ctrl_c_is_a_clean_end(tmp_path: Path) -> None:
    with started(tmp_path, *_BARE) as server:
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=60) == 0
    assert (tmp_path / "kubeconfig").stat().st_mode & 0o777 == 0o600


async def _story(folder: Path) -> None:
    kept: dict[str, int] = {}
    gone: set[str] = set()
    highest = 0
    for round_ in range(_ROUNDS):
        with started(folder, *_BARE) as server:
            async with reaching(folder) as client:
                _, found = await client.get(MAPS)
                there = {
                    each["metadata"]["name"]: int(each["metadata"]["resourceVersion"])
                    for each in found["items"]
                }
                assert kept.items() <= there.items()
                assert not gone & there.keys()
                assert int(found["metadata"]["resourceVersion"]) >= highest
                writers = [
                    asyncio.create_task(_write(client, f"r{round_}-w{number}", kept, gone))
                    for number in range(8)
                ]
                await asyncio.sleep(0.7)
                async with asyncio.timeout(60):
                    while len(kept) <= 10 * (round_ + 1):
                        await asyncio.sleep(0.05)
                server.kill()
                await asyncio.gather(*writers)
        highest = max(kept.values(), default=0)
        assert len(kept) > 10 * (round_ + 1)


async def _write(client: Client, prefix: str, kept: dict[str, int], gone: set[str]) -> None:
    """Make objects and delete every fourth of them, until the server is gone."""
    number = 0
    while True:
        name = f"{prefix}-{number}"
        number += 1
        try:
            code, made = await client.post(MAPS, config(name, text="x" * 200))
            assert code == 201
            if number % 4:
                kept[name] = int(made["metadata"]["resourceVersion"])
            elif (await client.delete(f"{MAPS}/{name}"))[0] == 200:
                gone.add(name)
        except (aiohttp.ClientError, OSError):
            return
