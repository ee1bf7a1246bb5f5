"""Credentials: what authenticates a request to the API server.

They change while the control plane runs: tokens in files are rotated, exec plugins issue ones that
expire. So each request asks its `CredentialSource` for the current credential, and for a renewed
one after a 401. A credential must never be logged or quoted in an error.
"""

import ssl
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from multidict import CIMultiDict, CIMultiDictProxy

from aliquot.errors import UnreachableError

_REREAD_SECONDS = 60.0
"""As client-go: the kubelet rotates a token at 80% of its life, of 10 minutes at least."""


@dataclass(frozen=True, slots=True, eq=False)
class Credential:
    """Authentication headers, and TLS with or without a client certificate; None: no TLS."""

    headers: CIMultiDictProxy[str] = field(repr=False)
    tls: ssl.SSLContext | None


class CredentialSource(Protocol):
    """Where credentials come from."""

    async def credential(self) -> Credential:
        """The current credential; `UnreachableError` if there is none."""
        ...

    async def renew(self, refused: Credential) -> Credential | None:
        """Another credential than the refused one; None if there is no other."""
        ...


def with_token(extra: CIMultiDict[str], token: str | None) -> CIMultiDictProxy[str]:
    """Headers with a bearer token, if there is one, and with the extra headers."""
    headers = CIMultiDict(extra)
    if token:
        headers["Authorization"] = f"Bearer {token}"
    return CIMultiDictProxy(headers)


class StaticCredential:
    """A credential that never changes."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    async def credential(self) -> Credential:
        """Always the same one."""
        return self._credential

    async def renew(self, refused: Credential) -> Credential | None:
        """Never another one."""
        return None


class TokenFile:
    """A bearer token in a file that is rotated by the kubelet, or by another program.

    While the file cannot be read, the token that was read before stays in use.
    """

    def __init__(
        self,
        file: Path,
        tls: ssl.SSLContext | None,
        extra: CIMultiDict[str],
        token: str | None = None,
    ) -> None:
        self._file = file
        self._tls = tls
        self._extra = extra
        self._token = token
        self._current: Credential | None = None
        self._read_at = 0.0

    async def credential(self) -> Credential:
        """With the token as the file had it at most a minute ago."""
        if self._current is None or time.monotonic() - self._read_at >= _REREAD_SECONDS:
            return self._read()
        return self._current

    async def renew(self, refused: Credential) -> Credential | None:
        """With the token that the file has now, if that is another."""
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
            self._current = Credential(with_token(self._extra, token), self._tls)
        return self._current
