"""Sees to it that API servers ask the webhook, and believe it.

In a cluster, whoever installs Aliquot writes the two configurations, and all that is done here is
to put in whom to trust, again and again, should somebody take it out. For development, where there
is no Service to go by, the configurations are written here, with the address that is given.
"""

import asyncio
from dataclasses import dataclass

import structlog

from aliquot.dialects.core.documents import Body
from aliquot.errors import ApiError, UnreachableError
from aliquot.kube.api.backoff import Backoff
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from aliquot.kube.install.installation import Installation
from aliquot.kube.install.webhooks import configurations

_LOOK_SECONDS = 10.0
_END_SECONDS = 2.0
_MISSING = 404
_RESOURCES = {each.kind: each for each in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS)}
_log = structlog.get_logger()


@dataclass(slots=True)
class Registration:
    """Looks after both configurations."""

    client: Client
    name: str
    bundle: str = ""
    """Whom API servers are to trust, as it stands in a configuration."""
    _trouble: str = ""

    async def follow(self) -> None:
        """Look after them for ever."""
        while True:
            await self.look()
            await asyncio.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """Put in whom to trust, wherever it is not there; trouble is logged once, and passes."""
        trouble = ""
        for resource in _RESOURCES.values():
            try:
                await self._repair(resource)
            except (ApiError, UnreachableError) as error:
                trouble = str(error)
        if trouble and trouble != self._trouble:
            _log.warning("cannot look after a webhook configuration", problem=trouble)
        self._trouble = trouble

    async def register(self, url: str, namespace: str) -> None:
        """Write both, so that the webhook is asked at this address; tries until it works."""
        backoff = Backoff()
        while True:
            try:
                return await self._register(url, namespace)
            except (ApiError, UnreachableError) as error:
                _log.warning("cannot write a webhook configuration", problem=str(error))
            await asyncio.sleep(backoff.pause())

    async def unregister(self) -> None:
        """Have nobody ask any more; what cannot be deleted is left."""
        for resource in _RESOURCES.values():
            try:
                await self.client.delete(resource.path(None, self.name), timeout=_END_SECONDS)
            except (ApiError, UnreachableError) as error:
                _log.warning("cannot delete a webhook configuration", problem=str(error))

    async def _register(self, url: str, namespace: str) -> None:
        for body in configurations(Installation(namespace=namespace)):
            resource = _RESOURCES[body["kind"]]
            body["metadata"]["name"] = self.name
            for hook in body["webhooks"]:
                path = hook["clientConfig"]["service"]["path"]
                hook["clientConfig"] = {"url": f"{url.rstrip('/')}{path}"}
                if self.bundle:
                    hook["clientConfig"]["caBundle"] = self.bundle
            await self._write(resource, body)

    async def _repair(self, resource: Resource) -> None:
        path = resource.path(None, self.name)
        found: Body = await self.client.get(path)
        steps: list[Body] = []
        for index, hook in enumerate(found.get("webhooks") or []):
            if hook["clientConfig"].get("caBundle") != self.bundle:
                at = f"/webhooks/{index}"
                steps.append({"op": "test", "path": f"{at}/name", "value": hook["name"]})
                value = {"path": f"{at}/clientConfig/caBundle", "value": self.bundle}
                steps.append({"op": "add", **value})
        if steps:
            await self.client.patch(path, steps, patch_type="json")
            _log.info("trust put in", kind=resource.kind, name=self.name)

    async def _write(self, resource: Resource, body: Body) -> None:
        path = resource.path(None, self.name)
        try:
            found = await self.client.get(path)
        except ApiError as error:
            if error.code != _MISSING:
                raise
            await self.client.post(resource.path(), body)
            return
        body["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
        await self.client.put(path, body)
