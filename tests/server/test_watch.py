"""Watches: everything once and in order, from where one left off."""

import asyncio
from pathlib import Path
from typing import Any

from aliquot.server.app import Settings
from aliquot.server.storage.window import Window
from tests.server.client import MAPS, Client, config, served


def test_a_watch_begins_with_what_is_there_and_goes_on() -> None:
    async def story(client: Client) -> None:
        await client.post(MAPS, config("a"))
        seen = asyncio.create_task(_collect(client, 4))
        await asyncio.sleep(0.1)
        await client.post(MAPS, config("b"))
        await client.merge(f"{MAPS}/b", {"data": {"x": "1"}})
        await client.delete(f"{MAPS}/b")
        assert await seen == [
            ("ADDED", "a"),
            ("ADDED", "b"),
            ("MODIFIED", "b"),
            ("DELETED", "b"),
        ]

    _tell(story)


def test_a_watch_resumes_after_a_version() -> None:
    async def story(client: Client) -> None:
        _, one = await client.post(MAPS, config("a"))
        await client.post(MAPS, config("b"))
        version = one["metadata"]["resourceVersion"]
        assert await _collect(client, 1, resourceVersion=version) == [("ADDED", "b")]

    _tell(story)


def test_a_version_of_before_a_restart_is_expired_unless_it_is_the_last(tmp_path: Path) -> None:
    async def story() -> None:
        async with served(Settings(tmp_path)) as client:
            _, one = await client.post(MAPS, config("a"))
            await client.post(MAPS, config("b"))
        async with served(Settings(tmp_path)) as client:
            version = one["metadata"]["resourceVersion"]
            event = await anext(client.watch(MAPS, resourceVersion=version))
            assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
            assert event["object"]["reason"] == "Expired"
            _, there = await client.get(MAPS)
            await client.post(MAPS, config("c"))
            version = there["metadata"]["resourceVersion"]
            assert await _collect(client, 1, resourceVersion=version) == [("ADDED", "c")]

    asyncio.run(story())


def test_what_leaves_a_selection_is_deleted_from_it() -> None:
    async def story(client: Client) -> None:
        seen = asyncio.create_task(_collect(client, 2, labelSelector="in=yes"))
        await asyncio.sleep(0.1)
        body = config("a")
        body["metadata"]["labels"] = {"in": "yes"}
        await client.post(MAPS, config("b"))
        await client.post(MAPS, body)
        await client.merge(f"{MAPS}/a", {"metadata": {"labels": {"in": "no"}}})
        assert await seen == [("ADDED", "a"), ("DELETED", "a")]

    _tell(story)


def test_initial_events_end_with_a_bookmark() -> None:
    async def story(client: Client) -> None:
        await client.post(MAPS, config("a"))
        query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        watch = client.watch(MAPS, allowWatchBookmarks="true", **query)
        first, second = await anext(watch), await anext(watch)
        assert (first["type"], second["type"]) == ("ADDED", "BOOKMARK")
        marks = second["object"]["metadata"]["annotations"]
        assert marks == {"k8s.io/initial-events-end": "true"}

    _tell(story)


def test_ten_watchers_lose_nothing() -> None:
    async def story(client: Client) -> None:
        count = 200
        watchers = [asyncio.create_task(_collect(client, count)) for _ in range(10)]
        await asyncio.sleep(0.2)
        names = [f"m{number:03}" for number in range(count)]
        for start in range(0, count, 20):
            some = names[start : start + 20]
            await asyncio.gather(*(client.post(MAPS, config(name)) for name in some))
        for seen in await asyncio.gather(*watchers):
            assert sorted(seen) == [("ADDED", name) for name in names]

    _tell(story)


def test_a_watch_ends_when_its_time_is_up() -> None:
    async def story(client: Client) -> None:
        async with asyncio.timeout(60):
            async for _ in client.watch(MAPS, timeoutSeconds="1"):
                pass

    _tell(story)


async def _collect(client: Client, count: int, **query: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    async with asyncio.timeout(60):
        async for event in client.watch(MAPS, **query):
            found.append((event["type"], event["object"]["metadata"]["name"]))
            if len(found) == count:
                break
    return found


def _tell(story: Any) -> None:
    async def run() -> None:
        async with served() as client:
            await story(client)

    asyncio.run(run())


def test_a_change_that_comes_before_anybody_waits_is_not_slept_through() -> None:
    async def look() -> None:
        window = Window(0)
        news = window.next_change()
        window.notify()
        async with asyncio.timeout(60):
            await news

    asyncio.run(look())
