"""Keeps the webhook's identity in a Secret that all replicas share.

Whoever writes it first has made it: the others find that their own is too late, and take the one
that is there. A renewal goes the same way. Nothing is ever taken from a Secret that would not be
written into one.
"""

import asyncio
import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from aliquot.errors import ApiError, UnreachableError
from aliquot.json import Body
from aliquot.kube.api.backoff import Backoff
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import NAMESPACES, SECRETS
from aliquot.kube.webhook.identity import Identity, of_secret, renewed

_LOOK_SECONDS = 60.0
"""How often to look: this is also how long others may use the one before."""
_GONE, _CONFLICT = 404, 409
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class CertSecret:
    """Looks after one Secret."""

    client: Client
    namespace: str
    name: str
    reached_by: Sequence[str]
    """The names that the certificate must have."""

    async def identity(self) -> Identity:
        """What is kept, made or renewed if need be; tries until the API server answers."""
        backoff = Backoff()
        while True:
            try:
                found = await self._look()
            except (ApiError, UnreachableError) as error:
                _log.warning("cannot read or write the certificate", problem=str(error))
                found = None
            if found is not None:
                return found
            await asyncio.sleep(backoff.pause())

    async def follow(self, use: Callable[[Identity], None], used: Identity) -> None:
        """Look after it for ever; `use` hears of every other one than the one before."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            found = await self.identity()
            if found != used:
                used = found
                use(found)

    async def _look(self) -> Identity | None:
        """What is kept once all is well; None if somebody else came in between."""
        secret = await self._secret()
        kept = of_secret(secret) if secret is not None else None
        new = renewed(kept, self.reached_by, datetime.datetime.now(datetime.UTC))
        if new is None:
            return kept
        body = {**(secret or self._new()), "data": new.data()}
        try:
            if secret is None:
                await self.client.post(SECRETS.path(self.namespace), body)
            else:
                await self.client.put(SECRETS.path(self.namespace, self.name), body)
        except ApiError as error:
            if error.code == _CONFLICT:
                return None
            if error.code == _GONE and secret is None:
                await self._make_namespace()
                return None
            raise
        _log.info("new certificate", name=f"{self.namespace}/{self.name}")
        return new

    async def _secret(self) -> Body | None:
        try:
            found: Body = await self.client.get(SECRETS.path(self.namespace, self.name))
        except ApiError as error:
            if error.code == _GONE:
                return None
            raise
        return found

    async def _make_namespace(self) -> None:
        """Whoever runs in a namespace finds it there; who runs elsewhere may have to make it."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        await self.client.post(NAMESPACES.path(), body)

    def _new(self) -> Body:
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "type": "kubernetes.io/tls",
        }
