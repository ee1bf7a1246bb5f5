"""Whoever stands between a control plane and its server.

The control plane knows nothing of it: while the block lasts, those that start are given a client
whose calls and streams go through somebody's hands.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Protocol

import pytest

from aliquot.kube.api.client import Client
from aliquot.kube.control import control_plane

Send = Callable[[], Awaitable[bytes]]
"""Sends a call on its way, and returns the answer."""


class Between(Protocol):
    """Makes calls, or does not."""

    async def call(self, method: str, path: str, send: Send) -> bytes:
        """What becomes of a call."""
        ...


@contextmanager
def standing(between: Between) -> Iterator[None]:
    """Let all calls of the control planes that start in this block go through these hands.

    Streams do so, too, if it has a `lines`.
    """
    hears = getattr(between, "lines", None)

    class Passing(Client):
        async def call(self, method: str, path: str, *rest: Any, **more: Any) -> bytes:
            send = super().call
            return await between.call(method, path, lambda: send(method, path, *rest, **more))

        @asynccontextmanager
        async def stream(
            self, path: str, *rest: Any, **more: Any
        ) -> AsyncIterator[AsyncIterator[bytes]]:
            async with super().stream(path, *rest, **more) as lines:
                yield lines if hears is None else hears(path, lines)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(control_plane, "Client", Passing)
        yield
