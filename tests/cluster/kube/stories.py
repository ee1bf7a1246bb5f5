"""Tests that happen in an event loop: each in its own, and none for ever."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

_SECONDS = 180

Story = Callable[..., Coroutine[Any, Any, None]]


def story(told: Story) -> Callable[..., None]:
    """A test that is told as a coroutine."""

    @wraps(told)
    def test(*given: Any, **named: Any) -> None:
        asyncio.run(asyncio.wait_for(told(*given, **named), _SECONDS))

    return test


async def until(holds: Callable[[], object], seconds: float = 60) -> float:
    """Fail unless it holds before the time is over; say how long it took."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    while not holds():
        assert loop.time() < start + seconds, f"not so after {seconds:.0f} s"
        await asyncio.sleep(0.005)
    return loop.time() - start
