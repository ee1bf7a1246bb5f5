"""Credentials: what goes with every request so that the server knows who asks.

They can change under way: tokens in files are rotated, plugins give out ones that expire. A request
asks for the current credential each time, and for another one when the server did not take it.
Nothing here is ever logged, or quoted in an error.
"""

import ssl
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from multidict import CIMultiDict, CIMultiDictProxy

from aliquot.errors import UnreachableError

_REREAD_SECONDS = 60.0


@dataclass(frozen=True, slots=True, eq=False)
class Credential:
    """Headers that say who asks, and the TLS that may say so too; None: no TLS at all."""

    headers: CIMultiDictProxy[str] = field(repr=False)
    tls: ssl.SSLContext | None


class Proof(Protocol):
    """Where credentials come from."""

    async def credential(self) -> Credential:
        """The current one; `UnreachableError` if there is none to be had."""
        ...

    async def renew(self, refused: Credential) -> Credential | None:
        """Another than the one that was refused; None if there is no other."""
        ...


def with_token(others: CIMultiDict[str], token: str | None) -> CIMultiDictProxy[str]:
    """Headers that show a token, and others."""
    headers = CIMultiDict(others)
    if token:
        headers["Authorization"] = f"Bearer {token}"
    return CIMultiDictProxy(headers)


class Constant:
    """The same credential, always."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    async def credential(self) -> Credential:
        """The one there is."""
        return self._credential

    async def renew(self, refused: Credential) -> Credential | None:
        """There is no other."""
        return None


class TokenFile:
    """A token in a file that others write anew from time to time, well before it expires.

    A file that cannot be read for a moment does not matter while there is a token from before.
    """

    def __init__(
        self,
        file: Path,
        tls: ssl.SSLContext | None,
        others: CIMultiDict[str],
        token: str | None = None,
    ) -> None:
        self._file = file
        self._tls = tls
        self._others = others
        self._token = token
        self._current: Credential | None = None
        self._read_at = 0.0

    async def credential(self) -> Credential:
        """With the token as it was a minute ago at most."""
        if self._current is None or time.monotonic() - self._read_at >= _REREAD_SECONDS:
            return self._read()
        return self._current

    async def renew(self, refused: Credential) -> Credential | None:
        """With the token that is in the file now, if it is another."""
        if self._current is not refused:
            return self._current
        now = self._read()
        return None if now is refused else now

    def _read(self) -> Credential:
        try:
            token = self._file.read_text().strip()
        except (OSError, ValueError) as error:
            if self._token is None:
                raise UnreachableError(f"{self._file}: no token: {error}", sent=False) from None
            token = self._token
        self._read_at = time.monotonic()
        if self._current is None or token != self._token:
            self._token = token
            self._current = Credential(with_token(self._others, token), self._tls)
        return self._current
