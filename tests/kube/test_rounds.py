"""When a loop that decides lets other tasks have their turn."""

import asyncio

import pytest

from aliquot.kube.control import rounds
from aliquot.kube.control.rounds import Rounds


class Clock:
    """A clock that moves when it is told to; for the module that asks for the time."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        """The time, in seconds."""
        return self.now


@pytest.mark.parametrize(("milliseconds", "others"), [(1, []), (20, ["other"])])
def test_others_have_their_turn_once_a_turn_has_lasted(
    milliseconds: int, others: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _shared(monkeypatch, [milliseconds]) == others


def test_each_turn_is_counted_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a pause for the others, what came before it counts no more."""
    assert _shared(monkeypatch, [20, 1, 1]) == ["other"]
    assert _shared(monkeypatch, [2, 2, 2]) == ["other"]
    assert _shared(monkeypatch, [20, 20]) == ["other", "other"]


def _shared(monkeypatch: pytest.MonkeyPatch, milliseconds: list[int]) -> list[str]:
    """Share the loop after work of so many milliseconds each; which turns did another task have?"""
    clock, turns = Clock(), list[str]()
    monkeypatch.setattr(rounds, "time", clock)

    async def other() -> None:
        while True:
            await asyncio.sleep(0)
            turns.append("other")

    async def story() -> None:
        loop = Rounds()
        loop.wake()
        await loop.wait(None, 0)
        task = asyncio.create_task(other())
        await asyncio.sleep(0)
        turns.clear()
        for each in milliseconds:
            clock.now += each / 1000
            await loop.share()
        task.cancel()

    asyncio.run(story())
    return turns
