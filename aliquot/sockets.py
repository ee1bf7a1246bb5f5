"""The sockets of one pool of connections: none of them outlives the pool.

aiohttp forgets a TLS connection whose request was cancelled or timed out: it begins to close it,
and the rest waits for the server's answer. A connection that is cancelled in its handshake is not
closed at all. Both would stay open when the pool is closed, and be reported as leaks when the event
loop ends. So the pool's sockets are known here, and are shut down with it.
"""

import asyncio
import socket
from contextlib import suppress
from weakref import WeakSet

import aiohttp

_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
"""Seconds and tries: a dead server is noticed after 30 + 3 x 10 s (client-go: 45 s)."""
_CLOSE_SECONDS = 1.0
"""The loop closes a socket that was shut down in some four rounds; a stuck one is left to it."""


class Sockets:
    """Makes the sockets of a pool, with TCP keep-alive: a dead server is noticed on an idle watch.

    `make` is the pool's `socket_factory`; `close` comes after the pool itself was closed.
    """

    def __init__(self) -> None:
        self._made: WeakSet[socket.socket] = WeakSet()

    def make(self, address: aiohttp.AddrInfoType) -> socket.socket:
        """A socket for an address."""
        made = socket.socket(family=address[0], type=address[1], proto=address[2])
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE:
            if hasattr(socket, name):
                made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        self._made.add(made)
        return made

    async def close(self) -> None:
        """Shut down the sockets that are still open, and wait until the loop has closed them."""
        clock = asyncio.get_running_loop().time
        end = clock() + _CLOSE_SECONDS
        await asyncio.sleep(0)  # the loop closes aborted connections in its next round
        for each in self._open():
            with suppress(OSError):  # it was never connected, or the server has closed it
                each.shutdown(socket.SHUT_RDWR)
        while self._open() and clock() < end:
            await asyncio.sleep(0)

    def _open(self) -> list[socket.socket]:
        return [each for each in self._made if each.fileno() >= 0]
