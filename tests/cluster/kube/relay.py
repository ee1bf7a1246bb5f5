"""A relay between a client and a server: it can be cut, closed, hushed, and led to another server.

Servers that are started again have another port each time; the client sees one that never moves.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from aliquot.kube.api.access import Access, find


class Relay:
    """Passes bytes on, both ways."""

    def __init__(self) -> None:
        self.port = 0
        self.silent = False
        """Do connections stay open, and nothing passes?"""
        self._to: int | None = None
        self._open: set[asyncio.StreamWriter] = set()

    def lead(self, kubeconfig: Path) -> Access:
        """Lead to the server of this file; how to reach it through the relay."""
        access = find(kubeconfig)
        self._to = urlsplit(access.url).port
        return replace(access, url=f"https://127.0.0.1:{self.port}")

    def cut(self) -> None:
        """Break all connections; new ones can be made."""
        for writer in self._open:
            writer.transport.abort()

    def close(self) -> None:
        """Break all connections, and let nobody in until it leads somewhere again."""
        self._to = None
        self.cut()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to = self._to
        if to is None:
            writer.transport.abort()
            return
        there, onward = await asyncio.open_connection("127.0.0.1", to)
        both = {writer, onward}
        if self._to != to:  # it was closed meanwhile
            for each in both:
                each.transport.abort()
            return
        self._open |= both
        try:
            ways = (self._pass(reader, onward), self._pass(there, writer))
            await asyncio.wait(map(asyncio.ensure_future, ways), return_when="FIRST_COMPLETED")
        finally:
            self._open -= both
            for each in both:
                each.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(2**16):
                while self.silent:
                    await asyncio.sleep(0.01)
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def relay() -> AsyncIterator[Relay]:
    """One that leads nowhere yet."""
    made = Relay()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        made.close()
        await asyncio.sleep(0.05)
