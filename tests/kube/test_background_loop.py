"""The background loop: begins, goes on while the main loop is busy, ends, and says if it fails."""

import asyncio
import threading
import time

import pytest

from aliquot.errors import InputError
from aliquot.kube.observe import background_loop
from aliquot.kube.observe.background_loop import BackgroundLoop


def test_work_goes_on_in_a_thread_of_its_own_while_the_main_loop_is_busy() -> None:
    seen: list[str] = []

    async def work() -> None:
        while True:
            seen.append(threading.current_thread().name)
            await asyncio.sleep(0.01)

    async def story() -> None:
        async with BackgroundLoop(work):
            time.sleep(0.3)
            assert len(seen) > 5

    asyncio.run(story())
    assert set(seen) == {"side"}


def test_leaving_cancels_the_work_and_waits_for_it_to_tidy_up() -> None:
    tidied: list[bool] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.1)
            tidied.append(True)

    async def story() -> None:
        async with BackgroundLoop(work, work):
            await asyncio.sleep(0.1)

    asyncio.run(story())
    assert tidied == [True, True]


def test_work_that_is_done_does_not_end_the_rest() -> None:
    ticks: list[int] = []

    async def short() -> None:
        await asyncio.sleep(0)

    async def long() -> None:
        while True:
            ticks.append(1)
            await asyncio.sleep(0.01)

    async def story() -> None:
        async with BackgroundLoop(short, long):
            await asyncio.sleep(0.2)

    asyncio.run(story())
    assert len(ticks) > 5


async def broken() -> None:
    await asyncio.sleep(0.05)
    raise InputError("lease", "", "is broken")


def test_a_failure_reaches_who_waits_for_it_and_ends_the_other_work() -> None:
    ended: list[bool] = []

    async def other() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def story() -> None:
        async with BackgroundLoop(broken, other) as beside:
            await beside.failed()

    with pytest.raises(InputError, match="is broken"):
        asyncio.run(story())
    assert ended == [True]


def test_a_failure_that_nobody_waited_for_is_raised_on_leaving() -> None:
    async def story() -> None:
        async with BackgroundLoop(broken):
            await asyncio.sleep(0.3)

    with pytest.raises(InputError, match="is broken"):
        asyncio.run(story())


def test_a_failure_of_the_main_loop_is_not_hidden_by_one_at_the_side() -> None:
    async def story() -> None:
        async with BackgroundLoop(broken):
            await asyncio.sleep(0.3)
            raise KeyError("main")

    with pytest.raises(KeyError, match="main"):
        asyncio.run(story())


def test_waiting_for_a_failure_can_be_given_up() -> None:
    async def story() -> None:
        async with BackgroundLoop() as beside:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await beside.failed()

    asyncio.run(story())


def test_a_thread_that_hangs_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_loop, "_PATIENCE", 0.1)
    free = threading.Event()

    async def hang() -> None:
        free.wait(10)

    async def story() -> None:
        async with BackgroundLoop(hang):
            await asyncio.sleep(0.05)

    start = time.monotonic()
    asyncio.run(story())
    assert time.monotonic() - start < 5
    free.set()
