"""Exec plugins: programs that issue credentials, as most clouds have them.

A plugin is run when there is no credential yet, when the last one has expired, and after a 401.
Requests that need a credential at the same time share one run, and the event loop is never blocked.
What a plugin prints is secret: an error says what is wrong with it and must never quote it.
"""

import asyncio
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
from multidict import CIMultiDict

from aliquot.dialects.core.objects import Wire
from aliquot.errors import UnreachableError
from aliquot.kube.api.credential import Credential, with_token
from aliquot.kube.api.tls import Certificate, Trust

VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_RUN_SECONDS = 60.0
"""Plugins call a cloud's identity service over the network; seconds are usual, a minute is not."""
_EARLY_SECONDS = 10.0
"""A credential is renewed this long before it expires, so that it cannot expire on its way."""


@dataclass(frozen=True, slots=True)
class Command:
    """The command line, environment and input of a plugin."""

    version: str
    words: Sequence[str]
    environment: Mapping[str, str]
    cluster: dict[str, object] | None
    """`spec.cluster` of the ExecCredential, if the kubeconfig says provideClusterInfo."""
    hint: str = ""
    """How to install the plugin, for the error when it is missing."""
    interactive: bool = False
    """May it use the terminal, where there is one?"""


class _Status(Wire):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None


class _ExecCredential(Wire):
    api_version: str = ""
    kind: str = ""
    status: _Status = msgspec.field(default_factory=_Status)


class ExecPlugin:
    """The credentials that a plugin issues."""

    def __init__(self, command: Command, trust: Trust | None, extra: CIMultiDict[str]) -> None:
        self._command = command
        self._trust = trust
        self._extra = extra
        self._current: Credential | None = None
        self._expires: float | None = None
        self._running = asyncio.Lock()

    async def credential(self) -> Credential:
        """The last credential, or a new one if it has expired."""
        if self._current is not None and not self._expired():
            return self._current
        async with self._running:
            if self._current is None or self._expired():
                self._current = await self._issue()
            return self._current

    async def renew(self, refused: Credential) -> Credential | None:
        """A new credential, unless another request has renewed the refused one already."""
        async with self._running:
            if self._current is refused:
                self._current = await self._issue()
            return self._current

    def _expired(self) -> bool:
        return self._expires is not None and time.time() >= self._expires - _EARLY_SECONDS

    async def _issue(self) -> Credential:
        given = self._read(await self._run())
        status = given.status
        if status.client_certificate_data and not status.client_key_data:
            raise self._failed("its answer has a certificate without a key")
        if not status.token and not status.client_certificate_data:
            raise self._failed("its answer has neither a token nor a certificate")
        try:
            tls = self._trust.context(_certificate(status)) if self._trust is not None else None
        except ValueError as error:
            raise self._failed(f"its certificate is {error}") from None
        self._expires = _seconds(status.expiration_timestamp)
        return Credential(with_token(self._extra, status.token), tls)

    def _read(self, printed: bytes) -> _ExecCredential:
        try:
            given = msgspec.json.decode(printed, type=_ExecCredential)
        except msgspec.DecodeError as error:
            raise self._failed(f"its answer is not an ExecCredential: {error}") from None
        if (given.kind, given.api_version) != ("ExecCredential", self._command.version):
            raise self._failed(f"its answer is not an ExecCredential of {self._command.version}")
        return given

    async def _run(self) -> bytes:
        terminal = sys.stdin is not None and sys.stdin.isatty()
        interactive = self._command.interactive and terminal
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command.words,
                env={**os.environ, **self._command.environment, **self._info(interactive)},
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=None if interactive else asyncio.subprocess.PIPE,
            )
        except (OSError, ValueError) as error:
            hint = f"; {self._command.hint}" if self._command.hint else ""
            raise self._failed(f"cannot be run: {error}{hint}") from None
        try:
            limit = None if interactive else _RUN_SECONDS
            printed, errors = await asyncio.wait_for(process.communicate(), limit)
        except TimeoutError:
            raise self._failed(f"no answer in {_RUN_SECONDS:.0f} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            last = (errors or b"").decode(errors="replace").strip()[-200:]
            raise self._failed(f"ended with {process.returncode}{f': {last}' if last else ''}")
        return printed

    def _info(self, interactive: bool) -> dict[str, str]:
        spec: dict[str, object] = {"interactive": interactive}
        if self._command.cluster is not None:
            spec["cluster"] = self._command.cluster
        body = {"apiVersion": self._command.version, "kind": "ExecCredential", "spec": spec}
        return {"KUBERNETES_EXEC_INFO": msgspec.json.encode(body).decode()}

    def _failed(self, problem: str) -> UnreachableError:
        return UnreachableError(
            f"credential plugin {self._command.words[0]}: {problem}", sent=False
        )


def _certificate(status: _Status) -> Certificate | None:
    if not status.client_certificate_data or not status.client_key_data:
        return None
    return Certificate(status.client_certificate_data.encode(), status.client_key_data.encode())


def _seconds(moment: datetime | None) -> float | None:
    if moment is None:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
