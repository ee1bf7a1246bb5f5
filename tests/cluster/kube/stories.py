"""Tests that happen in an event loop: each in its own, and none for ever."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

_SECONDS = 60

Story = Callable[..., Coroutine[Any, Any, None]]


def story(told: Story) -> Callable[..., None]:
    """A test that is told as a coroutine."""

    @wraps(told)
    def test(*given: Any, **named: Any) -> None:
        asyncio.run(asyncio.wait_for(told(*given, **named), _SECONDS))

    return test


async def until(holds: Callable[[], object], seconds: float = 15) -> None:
    """Fail unless it holds before the time is over."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not holds():
        assert loop.time() < end, f"not so after {seconds:.0f} s"
        await asyncio.sleep(0.005)
