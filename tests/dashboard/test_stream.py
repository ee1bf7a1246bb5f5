"""When pages are told: at once, seldom enough, and never for no page."""

import asyncio
import time

import pytest

from aliquot.dashboard import waiting_list
from aliquot.dashboard.board import PARTS, Frame
from aliquot.dashboard.stream import Stream
from aliquot.engine import SECOND
from aliquot.engine.model.events import NodeSet, PodGone, PodSet
from tests.build.values import node, pod
from tests.dashboard.test_board import Page, World, read


class Counting(World):
    """A cluster that counts how often it is looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0
        look = self.watched.look

        def counted(now: int, notice: str = "") -> Frame:
            self.looks += 1
            return look(now, notice)

        self.watched.look = counted  # type: ignore[method-assign]
        self.apply(NodeSet(node("n", 4)))

    def stream(self) -> Stream:
        return Stream(lambda: self.watched, lambda: SECOND, lambda: "")


def test_without_a_page_the_cluster_is_not_looked_at_for_each_change() -> None:
    world = Counting()

    async def story() -> None:
        telling = asyncio.create_task(world.stream().run())
        await asyncio.sleep(0.1)
        before, began = world.looks, time.monotonic()
        for number in range(5):
            world.apply(PodSet(pod(f"p{number}", 1, node="n")))
            await asyncio.sleep(0.05)
        assert world.looks - before <= time.monotonic() - began
        telling.cancel()

    asyncio.run(story())


def test_a_page_gets_all_as_it_is_now_then_changes_as_they_come() -> None:
    world = Counting()

    async def story() -> None:
        stream = world.stream()
        telling = asyncio.create_task(stream.run())
        world.apply(PodSet(pod("p", 1, node="n")))
        with stream.reader() as reader:
            frames = reader.read()
            first = await anext(frames)
            assert first.whole
            assert first.cluster.running == 1
            world.apply(PodGone("p"))
            second = await asyncio.wait_for(anext(frames), 30)
            assert not second.whole
            assert second.cluster.running == 0
        telling.cancel()

    asyncio.run(story())


def test_a_page_is_told_every_reason_though_nothing_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting_list, "_ASKING_SECONDS", 0)  # so each frame asks for few
    world = Counting()
    for number in range(5):
        world.apply(PodSet(pod(f"p{number}", 8 + number)))

    async def story() -> None:
        stream = world.stream()
        telling = asyncio.create_task(stream.run())
        with stream.reader() as reader:
            frames = reader.read()
            page: Page = {part: {} for part in PARTS} | {"story": []}
            while not page["waiting"] or None in reasons(page):
                read(page, await asyncio.wait_for(anext(frames), 30))
        assert reasons(page) == {"NoNodeFits"}
        telling.cancel()

    def reasons(page: Page) -> set[str | None]:
        return {row["reason"] for row in page["waiting"].values()}

    asyncio.run(story())


def test_a_frame_is_encoded_once_for_all_pages() -> None:
    world = Counting()
    frame = world.watched.look(SECOND)
    assert frame.encoded() is frame.encoded()
