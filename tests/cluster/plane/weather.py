"""Bad weather between a control plane and its server: what is refused, lost, late or cut."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from aliquot.errors import ApiError, UnreachableError
from tests.cluster.plane.between import Send

Happening = Callable[[Send], Awaitable[bytes]]


def refused(code: int, reason: str = "", after: float | None = None) -> Happening:
    """The server says no, and does nothing."""

    async def happen(send: Send) -> bytes:
        raise ApiError(code, reason, "so the test wants it", retry_after=after)

    return happen


def unanswered() -> Happening:
    """It is carried out, and the connection breaks before the answer."""

    async def happen(send: Send) -> bytes:
        await send()
        raise UnreachableError("the connection broke", sent=True)

    return happen


def unsent() -> Happening:
    """It never gets there."""

    async def happen(send: Send) -> bytes:
        raise UnreachableError("no route to host", sent=False)

    return happen


def slow(seconds: float) -> Happening:
    """It is carried out late."""

    async def happen(send: Send) -> bytes:
        await asyncio.sleep(seconds)
        return await send()

    return happen


def behind(first: Callable[[], Awaitable[object]]) -> Happening:
    """Something else happens first."""

    async def happen(send: Send) -> bytes:
        await first()
        return await send()

    return happen


@dataclass
class _Rule:
    pattern: re.Pattern[str]
    happening: Happening
    left: int


class Weather:
    """Rules about calls, by method and path; the first that fits and is not used up applies."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        """Every write, as method and path."""
        self.silent = False
        """Do watches say nothing?"""
        self._rules: list[_Rule] = []
        self._cut = asyncio.Event()

    def on(self, pattern: str, happening: Happening, times: int = 1_000_000) -> None:
        """Whatever fits this pattern meets with this, so often."""
        self._rules.append(_Rule(re.compile(pattern), happening, times))

    def clear(self) -> None:
        """From now on everything is as it should be."""
        self._rules.clear()

    def cut(self) -> None:
        """Break all watches that are under way."""
        self._cut.set()
        self._cut = asyncio.Event()

    async def call(self, method: str, path: str, send: Send) -> bytes:
        """Let a call through, or not."""
        if method != "GET":
            self.seen.append(f"{method} {path}")
        for rule in self._rules:
            if rule.left and rule.pattern.search(f"{method} {path}"):
                rule.left -= 1
                return await rule.happening(send)
        return await send()

    async def lines(self, path: str, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The lines of a watch, until it is cut."""
        cut = asyncio.ensure_future(self._cut.wait())
        try:
            while (said := await self._before(cut, _next(lines))) is not None:
                if not self.silent:
                    yield said
        finally:
            cut.cancel()

    async def _before(
        self, cut: asyncio.Future[Any], coming: Coroutine[None, None, bytes | None]
    ) -> bytes | None:
        """What comes, if it comes before the cut."""
        line = asyncio.ensure_future(coming)
        try:
            await asyncio.wait((line, cut), return_when=asyncio.FIRST_COMPLETED)
            if cut.done():
                raise UnreachableError("the watch was cut", sent=True)
            return line.result()
        finally:
            line.cancel()
            await asyncio.gather(line, return_exceptions=True)


async def _next(lines: AsyncIterator[bytes]) -> bytes | None:
    async for line in lines:
        return line
    return None
