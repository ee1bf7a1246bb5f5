"""Everything that a cluster shows, event by event: a list and a watch for each kind.

It goes straight to the API server, never through the proxy that hurts the schedulers. A watch that
breaks resumes where it was, so that no event is missed; only where the server has forgotten its
history is everything listed again, and that is counted.
"""

import asyncio
import json
import time
from collections.abc import Callable
from http import HTTPStatus

from aliquot.errors import ApiError, UnreachableError
from aliquot.json import Body
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import Resource

Listener = Callable[[str, str, Body, float], None]
"""Called with type of event (ADDED, MODIFIED, DELETED), kind, object and time."""
_AGAIN = 0.2
"""Seconds before a server that is away is asked again."""


class Feed:
    """The objects of some kinds as they are now; tells listeners of every change."""

    def __init__(self, client: Client, resources: tuple[Resource, ...]) -> None:
        self.objects: dict[str, dict[str, Body]] = {each.kind: {} for each in resources}
        """By kind and uid."""
        self.listeners: list[Listener] = []
        self.gaps = 0
        """How often events were missed, since the server had forgotten them."""
        self.last_event = 0.0
        self._client = client
        self._resources = resources
        self._listed = asyncio.Event()
        self._missing = len(resources)

    async def run(self) -> None:
        """Follow all kinds until cancelled."""
        async with asyncio.TaskGroup() as group:
            for each in self._resources:
                group.create_task(self._follow(each))

    async def listed(self) -> None:
        """Wait until all kinds have been listed."""
        await self._listed.wait()

    async def _follow(self, resource: Resource) -> None:
        version: str | None = None
        first = True
        while True:
            try:
                if version is None:
                    version = await self._list(resource, first)
                    first = False
                version = await self._watch(resource, version)
            except ApiError as error:
                if error.code == HTTPStatus.GONE:
                    version = None
            except (UnreachableError, ValueError):
                pass
            await asyncio.sleep(_AGAIN)

    async def _list(self, resource: Resource, first: bool) -> str:
        said = await self._client.get(resource.path())
        found = {each["metadata"]["uid"]: each for each in said["items"]}
        known = self.objects[resource.kind]
        self.gaps += not first
        for uid in known.keys() - found.keys():
            self._tell("DELETED", resource.kind, known[uid])
        for body in found.values():
            self._tell("ADDED", resource.kind, body)
        if first:
            self._missing -= 1
            if not self._missing:
                self._listed.set()
        version: str = said["metadata"]["resourceVersion"]
        return version

    async def _watch(self, resource: Resource, version: str) -> str | None:
        """Follow a watch to its end; where to resume, None: nowhere."""
        query: dict[str, str | int] = {"watch": "true", "timeoutSeconds": 3600}
        query["resourceVersion"] = version
        try:
            async with self._client.stream(resource.path(), query) as lines:
                async for line in lines:
                    if not line:
                        continue
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        return None if event["object"].get("code") == HTTPStatus.GONE else version
                    version = event["object"]["metadata"]["resourceVersion"]
                    self._tell(event["type"], resource.kind, event["object"])
        except UnreachableError:
            pass
        return version

    def _tell(self, type_: str, kind: str, body: Body) -> None:
        uid = body["metadata"]["uid"]
        self.last_event = time.monotonic()
        if type_ == "DELETED":
            self.objects[kind].pop(uid, None)
        else:
            self.objects[kind][uid] = body
        for listener in self.listeners:
            listener(type_, kind, body, self.last_event)
