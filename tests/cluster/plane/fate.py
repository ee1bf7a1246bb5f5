"""A client whose process meets its fate at a certain write.

The control plane does not know: it is given this client in place of its own. Writes are counted as
they are sent; those of Leases do not count, nor do events, which nobody reads back: to die at one
is to die between the writes around it. Dead means dead: whatever is sent afterwards never
leaves the process, and whatever was under way is carried out, but nobody hears of it.
"""

import asyncio
import re
from collections import Counter
from enum import Enum
from typing import NoReturn

from aliquot.errors import UnreachableError
from tests.cluster.plane.between import Send

_NOT_COUNTED = re.compile(r"/(leases|events)\b")
_ABOUT_PODS = re.compile(r"/(pods|persistentvolumes|persistentvolumeclaims)/")


class Fate(Enum):
    """What becomes of the n-th write."""

    LAST = "last"
    """It is carried out, and the process is dead before it hears of it."""
    LOST = "lost"
    """It never arrives, those that were sent at the same moment do, and the process is dead."""
    UNANSWERED = "unanswered"
    """It is carried out, the connection breaks before the answer, and the process lives on."""


class Life:
    """One life of a control plane: what it wrote, and how it ended."""

    def __init__(self, fate: Fate = Fate.LAST, at: int | None = None) -> None:
        self.fate, self.at = fate, at
        self.writes: list[str] = []
        """Every write, as method and path."""
        self.evictions: Counter[str] = Counter()
        """How often each pod was evicted, by its path on the API, as far as the server agreed."""
        self.met = asyncio.Event()
        """Set when the fate has come."""
        self.died = asyncio.Event()
        self.under_way = 0
        if at == 0:
            self._die()

    @property
    def dead(self) -> bool:
        return self.died.is_set()

    def _die(self) -> None:
        self.died.set()
        self.met.set()

    async def call(self, method: str, path: str, send: Send) -> bytes:
        """Make a call in this life."""
        if self.dead:
            await _never()
        if method == "GET" or not self._counts(path):
            return await self._carried_out(path, send)
        self.writes.append(f"{method} {path}")
        mine = len(self.writes) == self.at
        if mine and self.fate is Fate.LOST:
            for _ in range(5):  # whoever was about to write does so
                await asyncio.sleep(0)
            self._die()
            await _never()
        if mine and self.fate is Fate.LAST:
            self._die()
        said = await self._carried_out(path, send)
        if self.dead:
            await _never()
        if mine:
            self.met.set()
            raise UnreachableError("the connection broke", sent=True)
        return said

    def _counts(self, path: str) -> bool:
        """Statuses are written all over again by whoever comes next: it is enough to die there."""
        if self.fate is not Fate.LAST and not _ABOUT_PODS.search(path):
            return False
        return not _NOT_COUNTED.search(path)

    async def _carried_out(self, path: str, send: Send) -> bytes:
        self.under_way += 1
        try:
            said = await send()
        finally:
            self.under_way -= 1
        if path.endswith("/eviction"):
            self.evictions[path] += 1
        return said

    async def over(self) -> None:
        """Wait until nothing of a dead process is on its way any more."""
        while self.under_way:
            await asyncio.sleep(0.001)


async def _never() -> NoReturn:
    await asyncio.Event().wait()
    raise AssertionError("never")
