"""Every write that was acknowledged is there after kill -9, and versions never go back."""

import asyncio
import signal
import subprocess
import sys
import time
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import aiohttp
import pytest
import yaml

from tests.server.client import MAPS, Client, config, speaking

_ROUNDS = 3


def test_acknowledged_writes_survive_being_killed(tmp_path: Path) -> None:
    asyncio.run(_story(tmp_path))


def test_ctrl_c_is_a_clean_end(tmp_path: Path) -> None:
    server = _start(tmp_path)
    server.send_signal(signal.SIGINT)
    assert server.wait(timeout=10) == 0
    assert (tmp_path / "kubeconfig").stat().st_mode & 0o777 == 0o600


async def _story(folder: Path) -> None:
    kept: dict[str, int] = {}
    gone: set[str] = set()
    highest = 0
    for round_ in range(_ROUNDS):
        server = _start(folder)
        try:
            async with _client(folder) as client:
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
                server.kill()
                await asyncio.gather(*writers)
        finally:
            server.kill()
            server.wait()
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


def _start(folder: Path) -> subprocess.Popen[bytes]:
    (folder / "kubeconfig").unlink(missing_ok=True)
    command = [sys.executable, "-m", "aliquot", "up", "--no-scheduler", "--nodes", "0"]
    server = subprocess.Popen(
        [*command, "--data-dir", str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for _ in range(200):
        if (folder / "kubeconfig").exists():
            return server
        time.sleep(0.05)
    server.kill()
    pytest.fail("the server does not start")


def _client(folder: Path) -> AbstractAsyncContextManager[Client]:
    written = yaml.safe_load((folder / "kubeconfig").read_text())
    url = written["clusters"][0]["cluster"]["server"]
    return speaking(url, folder / "ca.crt", written["users"][0]["user"]["token"])
