"""The registration of the webhook at the API server: its two webhook configurations.

In a cluster, the installation creates both configurations, and this module only fills in
`caBundle`, again whenever it is missing or another one. For development, where there is no Service,
it writes the whole configurations, with the webhook's URL.
"""

import asyncio
from dataclasses import dataclass
from http import HTTPStatus

import structlog

from aliquot.errors import ApiError, UnreachableError
from aliquot.json import Body
from aliquot.kube.api.backoff import Backoff
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from aliquot.kube.install.installation import Installation
from aliquot.kube.install.webhooks import configurations

_CHECK_SECONDS = 10.0
"""How long a removed `caBundle` may be missing: API servers refuse writes to our kinds then."""
_UNREGISTER_SECONDS = 2.0
"""The timeout of deleting a configuration, so that the webhook ends soon even without a server."""
_RESOURCES = {each.kind: each for each in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS)}
_log = structlog.get_logger()


@dataclass(slots=True)
class Registration:
    """Keeps both webhook configurations up to date."""

    client: Client
    name: str
    bundle: str = ""
    """The `caBundle`: the CAs that API servers trust."""
    _trouble: str = ""

    async def follow(self) -> None:
        """Check both until cancelled."""
        while True:
            await self.check()
            await asyncio.sleep(_CHECK_SECONDS)

    async def check(self) -> None:
        """Fill in `caBundle` where it is missing; an error is logged once, not raised."""
        trouble = ""
        for resource in _RESOURCES.values():
            try:
                await self._repair(resource)
            except (ApiError, UnreachableError) as error:
                trouble = str(error)
        if trouble and trouble != self._trouble:
            _log.warning("cannot look after a webhook configuration", problem=trouble)
        self._trouble = trouble

    async def register(self, url: str | None, namespace: str) -> None:
        """Write both, so that API servers call this URL, or without one the Service; retries."""
        backoff = Backoff()
        while True:
            try:
                return await self._register(url, namespace)
            except (ApiError, UnreachableError) as error:
                _log.warning("cannot write a webhook configuration", problem=str(error))
            await asyncio.sleep(backoff.pause())

    async def unregister(self) -> None:
        """Delete both; one that cannot be deleted is left."""
        for resource in _RESOURCES.values():
            try:
                await self.client.delete(
                    resource.path(None, self.name), timeout=_UNREGISTER_SECONDS
                )
            except (ApiError, UnreachableError) as error:
                _log.warning("cannot delete a webhook configuration", problem=str(error))

    async def _register(self, url: str | None, namespace: str) -> None:
        for body in configurations(Installation(namespace=namespace)):
            resource = _RESOURCES[body["kind"]]
            body["metadata"]["name"] = self.name
            for hook in body["webhooks"]:
                if url is not None:
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
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            await self.client.post(resource.path(), body)
            return
        body["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
        await self.client.put(path, body)
