"""Writes: in order of urgency and of each object, only while leading, again if put off."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from aliquot.errors import ApiError, UnreachableError
from aliquot.kube.execution import writer as writing
from aliquot.kube.execution.writer import Urgency, Write, Writer


class Desk:
    """A writer of one at a time, and what was written."""

    def __init__(self, at_once: int = 1) -> None:
        self.leads = True
        self.written: list[str] = []
        self.results: list[tuple[str, str]] = []
        self.writer = Writer(
            lambda: self.leads, at_once, lambda word, result, _: self.results.append((word, result))
        )

    def add(
        self,
        about: str,
        text: str,
        urgency: Urgency = Urgency.STATUS,
        word: str | None = None,
        first: Callable[[], Awaitable[None]] | None = None,
        delay: float = 0.0,
    ) -> None:
        async def run() -> None:
            if first is not None:
                await first()
            self.written.append(text)

        self.writer.add(Write(about, word or text, urgency, run, delay))

    async def through(self) -> None:
        task = asyncio.create_task(self.writer.run())
        async with asyncio.timeout(60):
            while not self.writer.idle:
                await asyncio.sleep(0.005)
        task.cancel()


def play(story: Callable[[Desk], Awaitable[None]], at_once: int = 1) -> Desk:
    desk = Desk(at_once)

    async def run() -> None:
        await story(desk)

    asyncio.run(run())
    return desk


def test_the_urgent_come_first_and_equals_in_turn() -> None:
    async def story(desk: Desk) -> None:
        desk.add("a", "event", Urgency.EVENT)
        desk.add("b", "status-1", Urgency.STATUS)
        desk.add("c", "status-2", Urgency.STATUS)
        desk.add("d", "bind", Urgency.DECISION)
        await desk.through()

    assert play(story).written == ["bind", "status-1", "status-2", "event"]


def test_operations_of_one_urgency_take_turns() -> None:
    """A binding that has nothing to do with a burst of evictions does not wait for all of them."""

    async def story(desk: Desk) -> None:
        for number in range(5):
            desk.add(f"victim-{number}", f"evict-{number}", Urgency.DECISION, "evict")
        for number in range(2):
            desk.add(f"pod-{number}", f"bind-{number}", Urgency.DECISION, "bind")
        await desk.through()
        desk.add("pod-2", "bind-2", Urgency.DECISION, "bind")
        desk.add("victim-5", "evict-5", Urgency.DECISION, "evict")
        await desk.through()

    written = play(story).written
    assert written[:4] == ["evict-0", "bind-0", "evict-1", "bind-1"]
    assert written[4:7] == ["evict-2", "evict-3", "evict-4"]
    assert sorted(written[7:]) == ["bind-2", "evict-5"], "who had fewer before is owed nothing now"


@pytest.mark.parametrize(
    ("urgency", "fewest", "most"), [("EVENT", 2, 7), ("STATUS", 8, 24), ("DECISION", 30, 32)]
)
def test_what_nothing_waits_for_takes_few_connections(urgency: str, fewest: int, most: int) -> None:
    highest = running = 0

    async def story(desk: Desk) -> None:
        async def slow() -> None:
            nonlocal highest, running
            running += 1
            highest = max(highest, running)
            await asyncio.sleep(0.002)
            running -= 1

        for number in range(40):
            desk.add(f"w-{number}", f"w-{number}", Urgency[urgency], "write", slow)
        await desk.through()

    assert len(play(story, at_once=32).written) == 40
    assert fewest <= highest <= most


def test_a_write_that_is_kept_is_sent_after_its_delay_as_it_is_by_then() -> None:
    async def story(desk: Desk) -> None:
        for text in ("one", "two"):
            desk.add("a", text, word="say", delay=0.05)
        assert not desk.writer.waiting
        assert not desk.writer.idle
        desk.add("b", "other")
        await desk.through()
        desk.add("a", "three", word="say", delay=60)
        desk.add("a", "four", word="say")
        desk.add("c", "never", word="say", delay=0.01)
        desk.writer.withdraw("c", "say")
        desk.add("d", "never", word="say", delay=0.01)
        await desk.through()
        desk.add("d", "never", word="say", delay=0.01)
        desk.writer.drop_all()
        await desk.through()
        await asyncio.sleep(0.02)

    assert play(story).written == ["other", "two", "four", "never"]


def test_writes_about_one_object_follow_each_other() -> None:
    async def story(desk: Desk) -> None:
        async def slow() -> None:
            await asyncio.sleep(0.02)

        desk.add("pod", "first", Urgency.EVENT, first=slow)
        desk.add("pod", "second", Urgency.DECISION)
        await desk.through()

    assert play(story, at_once=4).written == ["first", "second"]


def test_several_are_under_way_at_once() -> None:
    most = 0

    async def story(desk: Desk) -> None:
        under_way = 0

        async def slow() -> None:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.01)
            under_way -= 1

        for number in range(10):
            desk.add(f"pod-{number}", f"{number}", first=slow)
        await desk.through()

    assert len(play(story, at_once=3).written) == 10
    assert most == 3


def test_a_newer_word_takes_the_place_of_one_that_waits() -> None:
    async def story(desk: Desk) -> None:
        desk.add("pod", "old", word="condition")
        desk.add("pod", "new", word="condition")
        desk.add("pod", "label", word="label")
        await desk.through()

    assert play(story).written == ["new", "label"]


def test_what_is_withdrawn_is_not_written() -> None:
    async def story(desk: Desk) -> None:
        desk.add("pod", "condition")
        desk.add("pod", "bind")
        desk.writer.withdraw("pod", "condition")
        desk.writer.withdraw("nobody", "condition")
        await desk.through()

    assert play(story).written == ["bind"]


def test_what_is_withdrawn_while_it_is_put_off_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writing, "pause", lambda tries: 0.001)

    async def story(desk: Desk) -> None:
        async def overtaken() -> None:
            desk.add("pod", "bind")
            desk.writer.withdraw("pod", "condition")
            raise ApiError(503, "", "busy")

        desk.add("pod", "condition", first=overtaken)
        await desk.through()
        await asyncio.sleep(0.02)

    assert play(story).written == ["bind"]


def test_nobody_writes_who_does_not_lead() -> None:
    async def story(desk: Desk) -> None:
        async def lose() -> None:
            desk.leads = False

        desk.add("a", "last", first=lose)
        desk.add("b", "never")
        await desk.through()

    assert play(story).written == ["last"]


@pytest.mark.parametrize(
    "error",
    [
        UnreachableError("cut", sent=True),
        ApiError(503, "", "busy"),
        ApiError(429, "", ""),
        ApiError(409, "Conflict", ""),
    ],
)
def test_what_is_put_off_is_tried_again(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "pause", lambda tries: 0.001)
    left = [error, error]

    async def story(desk: Desk) -> None:
        async def fail() -> None:
            if left:
                raise left.pop()

        desk.add("pod", "bind", first=fail)
        await desk.through()

    desk = play(story)
    assert desk.written == ["bind"]
    assert desk.results == [("bind", "put off"), ("bind", "put off"), ("bind", "done")]


@pytest.mark.parametrize("when", ["before it fails", "after it failed"])
def test_what_is_put_off_gives_way_to_a_newer_word(
    when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "pause", lambda tries: 0.02)

    async def story(desk: Desk) -> None:
        def say_more() -> None:
            desk.add("pod", "new", word="condition")

        async def fail() -> None:
            if when == "before it fails":
                say_more()
            else:
                asyncio.get_running_loop().call_later(0.005, say_more)
            raise ApiError(500, "", "etcd is away")

        desk.add("pod", "old", word="condition", first=fail)
        await desk.through()
        await asyncio.sleep(0.05)
        await desk.through()

    assert play(story).written == ["new"]


def test_a_refusal_stops_nobody_else() -> None:
    async def story(desk: Desk) -> None:
        async def refuse() -> None:
            raise ApiError(403, "Forbidden", "not yours")

        async def break_down() -> None:
            raise ValueError("a defect")

        desk.add("a", "refused", first=refuse)
        desk.add("b", "broken", first=break_down)
        desk.add("c", "written")
        await desk.through()

    desk = play(story)
    assert desk.written == ["written"]
    assert desk.results[:2] == [("refused", "refused"), ("broken", "failed")]


def test_what_is_dropped_is_neither_made_nor_tried_again() -> None:
    async def story(desk: Desk) -> None:
        async def drop() -> None:
            desk.writer.drop_all()
            raise UnreachableError("cut", sent=True)

        desk.add("a", "under way", first=drop)
        desk.add("b", "waiting")
        desk.add("a", "behind")
        await desk.through()
        desk.add("c", "later")
        await desk.through()

    assert play(story).written == ["later"]


def test_an_urgent_one_pulls_along_what_stands_before_it() -> None:
    async def story(desk: Desk) -> None:
        for number in range(3):
            desk.add(f"pod-{number}", f"label-{number}", Urgency.STATUS)
        desk.add("pod-2", "evict", Urgency.DECISION)
        await desk.through()

    assert play(story).written == ["label-2", "evict", "label-0", "label-1"]


def test_what_is_withdrawn_leaves_no_trace() -> None:
    async def story(desk: Desk) -> None:
        desk.add("pod", "nominate", Urgency.NOMINATION)
        desk.writer.withdraw("pod", "nominate")
        assert desk.writer._lanes == {}
        desk.add("pod", "bind", Urgency.DECISION)
        await desk.through()
        assert desk.writer._lanes == {}

    assert play(story).written == ["bind"]


def test_it_is_remembered_that_something_was_not_allowed() -> None:
    async def story(desk: Desk) -> None:
        desk.leads = False
        desk.add("pod", "bind", Urgency.DECISION)
        await desk.through()
        assert desk.writer.fenced
        desk.writer.drop_all()
        assert not desk.writer.fenced

    assert play(story).written == []


def test_whoever_stops_waits_for_what_is_under_way_and_begins_nothing() -> None:
    async def story(desk: Desk) -> None:
        async def slow() -> None:
            desk.add("other", "late", Urgency.DECISION)
            await asyncio.sleep(0.05)

        desk.add("pod", "bind", Urgency.DECISION, first=slow)
        task = asyncio.create_task(desk.writer.run())
        await asyncio.sleep(0.01)
        await desk.writer.stop()
        assert desk.written == ["bind"]
        desk.add("pod", "event", Urgency.EVENT)
        await asyncio.sleep(0.01)
        task.cancel()

    assert play(story).written == ["bind"]
