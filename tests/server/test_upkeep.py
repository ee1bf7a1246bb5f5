"""A server that runs for long stays as small as its objects: Events, windows and files."""

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aliquot.server.app import Settings, running
from aliquot.server.storage import window as window_module
from aliquot.server.storage.entry import entry
from aliquot.server.storage.log import Log
from aliquot.server.storage.store import Store
from aliquot.server.storage.upkeep import Upkeep
from aliquot.server.storage.window import FRESH_SECONDS, MOST_SECONDS, Change, Window
from tests.server.client import connected

START = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def event(name: str, **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "a", "uid": name}
    metadata["creationTimestamp"] = f"{START:%Y-%m-%dT%H:%M:%SZ}"
    return {"apiVersion": "v1", "kind": "Event", "metadata": metadata, **more}


def stored(folder: Path, story: Callable[[Store], Awaitable[None]]) -> None:
    async def run() -> None:
        store = Store(Log(folder / "objects.sqlite", lasting=False))
        await story(store)
        await store.close()

    asyncio.run(run())


def names(store: Store) -> list[str]:
    return [each.name for each in store.all("events")]


def test_events_expire_an_hour_after_their_last_write(tmp_path: Path) -> None:
    async def story(store: Store) -> None:
        clock = Clock()
        upkeep = Upkeep(store, 3600, clock=clock)
        for name in ("one", "two"):
            store.put("events", event(name))
        store.put("pods", {**event("pod"), "kind": "Pod"})
        clock.forward(1800)
        store.put("events", event("one", count=2))
        clock.forward(1799)
        await upkeep.work()
        assert names(store) == ["one", "two"]
        clock.forward(2)
        await upkeep.work()
        assert names(store) == ["one"]
        clock.forward(1800)
        await upkeep.work()
        assert names(store) == []
        assert len(store.all("pods")) == 1
        await store.wait_durable()
        changes = store.bucket("events").window.since(1)
        assert changes is not None
        assert [each.type for each in changes[-2:]] == ["DELETED", "DELETED"]

    stored(tmp_path, story)


def test_of_too_many_events_the_oldest_go(tmp_path: Path) -> None:
    async def story(store: Store) -> None:
        upkeep = Upkeep(store, 3600, most_events=3, clock=Clock())
        for number in (3, 1, 2, 0, 4):
            store.put("events", event(f"e{number}"))
        store.put("events", event("e3", count=2))
        await upkeep.work()
        assert names(store) == ["e0", "e3", "e4"]

    stored(tmp_path, story)


def test_an_event_expires_after_a_restart_by_what_it_says(tmp_path: Path) -> None:
    async def before(store: Store) -> None:
        store.put("events", event("old"))
        store.put("events", event("renewed", lastTimestamp="2026-01-01T00:30:00Z"))
        store.put("events", event("future", lastTimestamp="2099-01-01T00:00:00Z"))
        store.put("events", event("odd", lastTimestamp="soon", series={"lastObservedTime": 7}))

    async def after(store: Store) -> None:
        clock = Clock()
        clock.forward(3601)
        upkeep = Upkeep(store, 3600, clock=clock)
        await upkeep.work()
        assert names(store) == ["future", "renewed"]
        clock.forward(3600)
        await upkeep.work()
        assert names(store) == []

    stored(tmp_path, before)
    stored(tmp_path, after)


def test_a_server_expires_its_events() -> None:
    async def story() -> None:
        settings = Settings(controllers=False, event_seconds=0)
        async with running(settings) as server, connected(server) as client:
            where = "/api/v1/namespaces/default/events"
            said = {"kind": "Pod", "name": "p", "namespace": "default"}
            made = {"metadata": {"name": "e"}, "involvedObject": said}
            assert (await client.post(where, made))[0] == 201
            await client.until(f"{where}/e", lambda code, _: code == 404)

    asyncio.run(story())


def a_change(version: int, size: int = 10) -> Change:
    body = {**event("x"), "kind": "Pod", "data": "a" * size}
    return Change("pods", "MODIFIED", entry("pods", body, version), None)


def test_a_window_keeps_five_minutes_but_always_the_last_changes() -> None:
    now = 0.0
    window = Window(0, clock=lambda: now)
    for version in range(1, 4001):
        now = version * 0.1
        window.append(a_change(version))
    window.trim()
    assert len(window) == MOST_SECONDS * 10
    assert window.after(999) is None
    kept = window.after(1000)
    assert kept is not None
    assert kept[0].entry.version == 1001
    now += 2 * MOST_SECONDS
    window.trim()
    assert len(window) == 100
    assert window.floor == 3900
    assert window.after(3900) is not None, "a watch that has seen all but the last goes on"


def test_a_window_keeps_what_is_fresh_and_little_of_what_is_not() -> None:
    now = 0.0
    window = Window(0, clock=lambda: now)
    for version in range(1, 4001):
        now = version * 0.1
        window.append(a_change(version, 20_000))
    window.trim()
    aged = 8 * 2**20 / a_change(1, 20_000).bytes
    assert len(window) == FRESH_SECONDS * 10 > aged
    for version in range(4001, 4101):
        now = version * 1.0
        window.append(a_change(version, 20_000))
    now += 2 * MOST_SECONDS
    window.trim()
    assert len(window) == 100


def test_lines_that_watches_have_passed_are_dropped() -> None:
    window = Window(0)
    for version in range(1, 1001):
        change = a_change(version)
        window.append(change)
        assert change.line
    kept = window.since(0)
    assert kept is not None
    assert sum(bool(each._line) for each in kept) <= 501
    assert all(each.line.startswith(b'{"type":"MODIFIED"') for each in kept)


def test_large_objects_leave_the_window_early(monkeypatch: Any) -> None:
    monkeypatch.setattr(window_module, "_MOST_BYTES", 100 * 2**10)
    monkeypatch.setattr(window_module, "_FEWEST", 5)
    window = Window(0)
    for version in range(1, 101):
        window.append(a_change(version, 8000))
    assert len(window) <= 12


def test_the_data_folder_is_compacted(tmp_path: Path) -> None:
    file = tmp_path / "objects.sqlite"
    many = [{**event(f"p{number}"), "kind": "Pod", "data": "a" * 4000} for number in range(3000)]

    async def story(store: Store) -> None:
        for each in many:
            store.put("pods", each)
        await store.wait_durable()
        full = file.stat().st_size + file.with_name("objects.sqlite-wal").stat().st_size
        for found in store.all("pods"):
            store.remove("pods", found.read())
        await store.wait_durable()
        upkeep = Upkeep(store)
        for _ in range(5):
            await upkeep.work()
            store.put("pods", many[0])
            await store.wait_durable()
        assert full > 12 * 2**20
        left = file.stat().st_size + file.with_name("objects.sqlite-wal").stat().st_size
        assert left < 10 * 2**20

    stored(tmp_path, story)


def test_a_file_of_an_older_version_can_be_compacted(tmp_path: Path) -> None:
    file = tmp_path / "objects.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE other (one INTEGER)")
    connection.close()
    log = Log(file, lasting=False)
    assert log._pragma("auto_vacuum") == 2
    log.close()


def test_only_the_owner_can_read_the_data(tmp_path: Path) -> None:
    folder = tmp_path / "wide"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    (folder / "objects.sqlite").touch(0o666)
    (folder / "objects.sqlite").chmod(0o666)
    before = os.umask(0)

    async def story() -> None:
        settings = Settings(data=folder, kubeconfig=folder / "config")
        async with running(settings) as server, connected(server) as client:
            body = {"metadata": {"generateName": "other-"}}
            assert (await client.post("/api/v1/namespaces", body))[0] == 201
            files = {each.name: each.stat().st_mode & 0o777 for each in folder.iterdir()}
            assert {"objects.sqlite", "objects.sqlite-wal", "config", "token"} <= files.keys()
            assert set(files.values()) == {0o600}

    try:
        asyncio.run(story())
        for each in folder.iterdir():
            each.chmod(0o666)
        asyncio.run(story())
    finally:
        os.umask(before)
