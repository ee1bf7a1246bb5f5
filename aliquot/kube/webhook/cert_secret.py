"""The Secret with the webhook's identity, which all replicas share.

The first replica creates it; the write of any other replica conflicts, and that replica uses what
it finds. A renewal works in the same way. An identity from a Secret is used only if it needs no
renewal, that is, if it is just what would be written there.
"""

import asyncio
import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus

import structlog

from aliquot.errors import ApiError, UnreachableError
from aliquot.json import Body
from aliquot.kube.api.backoff import Backoff
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import NAMESPACES, SECRETS
from aliquot.kube.webhook.identity import Identity, of_secret, renewed

_READ_SECONDS = 60.0
"""How often the Secret is read, and so how long a replica may serve with an older certificate."""
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class CertSecret:
    """Reads, creates and renews one Secret."""

    client: Client
    namespace: str
    name: str
    names: Sequence[str]
    """The DNS names that the certificate must have."""

    async def identity(self) -> Identity:
        """The identity, created or renewed if need be; retries until the API server answers."""
        backoff = Backoff()
        while True:
            try:
                found = await self._ensure()
            except (ApiError, UnreachableError) as error:
                _log.warning("cannot read or write the certificate", problem=str(error))
                found = None
            if found is not None:
                return found
            await asyncio.sleep(backoff.pause())

    async def follow(self, use: Callable[[Identity], None], used: Identity) -> None:
        """Keep it up to date until cancelled, and call `use` with each new identity."""
        while True:
            await asyncio.sleep(_READ_SECONDS)
            found = await self.identity()
            if found != used:
                used = found
                use(found)

    async def _ensure(self) -> Identity | None:
        """The identity of the Secret, renewed if due; None if another replica wrote first."""
        secret = await self._secret()
        kept = of_secret(secret) if secret is not None else None
        new = renewed(kept, self.names, datetime.datetime.now(datetime.UTC))
        if new is None:
            return kept
        body = {**(secret or self._new()), "data": new.data()}
        try:
            if secret is None:
                await self.client.post(SECRETS.path(self.namespace), body)
            else:
                await self.client.put(SECRETS.path(self.namespace, self.name), body)
        except ApiError as error:
            if error.code == HTTPStatus.CONFLICT:
                return None
            if error.code == HTTPStatus.NOT_FOUND and secret is None:
                await self._create_namespace()
                return None
            raise
        _log.info("new certificate", name=f"{self.namespace}/{self.name}")
        return new

    async def _secret(self) -> Body | None:
        try:
            found: Body = await self.client.get(SECRETS.path(self.namespace, self.name))
        except ApiError as error:
            if error.code == HTTPStatus.NOT_FOUND:
                return None
            raise
        return found

    async def _create_namespace(self) -> None:
        """Create the namespace: it is missing only if the webhook runs outside the cluster."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        await self.client.post(NAMESPACES.path(), body)

    def _new(self) -> Body:
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "type": "kubernetes.io/tls",
        }
