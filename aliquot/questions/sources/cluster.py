"""A live cluster as a source: everything that decides, listed once.

Only `get` and `list` are used, and only kinds that the server serves are asked for, so that an
account with the rights to read them is enough. A list that is refused ends the question: an answer
from half of a cluster would be wrong. Only what replaces evicted pods (workloads), and the
Configuration of the control plane, may be out of reach: then a note says so.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from http import HTTPStatus

from aliquot.dialects import configuration
from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core.documents import Document, parse
from aliquot.dialects.core.manifest import VOLCANO_JOBS
from aliquot.errors import ApiError, InputError
from aliquot.json import Body, seek
from aliquot.kube.api import access
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import CONFIG_MAPS, CUSTOM, PODS, SERVICES, WORKLOADS, Resource
from aliquot.kube.install.deployments import CONFIGURATION_FILE
from aliquot.kube.install.installation import CONFIGURATION
from aliquot.kube.intake.intake import WATCHED
from aliquot.questions.sources.essentials import number_images, page
from aliquot.questions.sources.reach import Reach
from aliquot.questions.sources.source import Source

PLACE = "cluster"
"""What messages name in place of a file."""
_PAGE = 2_000
"""Objects of one page of a list: at some KiB each, about as many MiB an answer."""
_CONNECTIONS = 8
"""Lists at a time: a dozen kinds are small, and a server answers each of a few at once."""
_LIST_SECONDS = 60.0
_DECIDING: tuple[Resource, ...] = (*WATCHED, PODS)
_REPLACING: tuple[Resource, ...] = (
    *(SERVICES, *WORKLOADS),
    *(each for each in CUSTOM.values() if each.group == VOLCANO_JOBS),
)
"""What makes pods anew when some are evicted, and spreads them by default."""
LISTED = (*_DECIDING, *_REPLACING)
"""All that a question lists, as far as it is served."""


def read_cluster(
    reach: Reach, settings: Configuration | None = None, policy: str | None = None
) -> Source:
    """The cluster as it is now; without `settings`, under those of its control plane."""
    return asyncio.run(_read(reach, settings, policy))


async def _read(reach: Reach, settings: Configuration | None, policy: str | None) -> Source:
    found = access.find(reach.kubeconfig, reach.context)
    name = f"cluster {found.url}"
    async with Client(found, connections=_CONNECTIONS) as client:
        notes = list[str]()
        try:
            served = await _served(client)
            taken = client.server_time or time.time_ns()  # by the clock that objects are dated by
            if settings is None:
                settings = await _configuration(client, reach.namespace, notes)
            lists = await asyncio.gather(*(_listed(client, each, notes) for each in served))
        except ApiError as error:
            raise InputError(name, "", str(error)) from None
    bodies = [body for listed in lists for body in listed]
    number_images(bodies)
    documents = [Document(PLACE, body) for body in bodies]
    absent = tuple(each.full_name for each in _DECIDING if each not in served)
    return Source(
        *(name, documents, settings, policy, taken, absent, tuple(notes)), home=reach.namespace
    )


async def _served(client: Client) -> list[Resource]:
    """The kinds that the server serves: it refuses to list others even to those who may."""
    versions = sorted({(each.group, each.version) for each in LISTED})
    answers = await asyncio.gather(*(_plurals(client, *each) for each in versions))
    plurals = dict(zip(versions, answers, strict=True))
    return [each for each in LISTED if each.plural in plurals[each.group, each.version]]


async def _plurals(client: Client, group: str, version: str) -> set[str]:
    where = f"/apis/{group}/{version}" if group else f"/api/{version}"
    try:
        found = await client.get(where)
    except ApiError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            return set()
        raise
    return {str(seek(each, "name")) for each in seek(found, "resources") or ()}


async def _listed(client: Client, resource: Resource, notes: list[str]) -> list[Body]:
    """Everything of a kind, as far as it decides; in one piece if its pages take too long."""
    try:
        try:
            return [body async for bodies in _pages(client, resource, _PAGE) for body in bodies]
        except ApiError as error:
            if error.code != HTTPStatus.GONE:
                raise
            return [body async for bodies in _pages(client, resource, 0) for body in bodies]
    except ApiError as error:
        if resource not in _REPLACING or error.code != HTTPStatus.FORBIDDEN:
            raise
    notes.append(f"{resource.full_name} may not be listed: the pods that they would make count not")
    return []


async def _pages(client: Client, resource: Resource, size: int) -> AsyncIterator[list[Body]]:
    """The pages of a list; 0 is one page of any size."""
    query = {"limit": str(size)} if size else {}
    while True:
        answer = await client.call("GET", resource.path(), query=query, timeout=_LIST_SECONDS)
        bodies, rest = page(resource, answer)
        yield bodies
        if not rest:
            return
        query["continue"] = rest


async def _configuration(client: Client, namespace: str, notes: list[str]) -> Configuration:
    """The Configuration of the control plane, or the default one where that cannot be read."""
    where = CONFIG_MAPS.path(namespace, CONFIGURATION)
    try:
        found = await client.get(where)
    except ApiError as error:
        if error.code not in (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND):
            raise
        what = "may not be read" if error.code == HTTPStatus.FORBIDDEN else "is not there"
        notes.append(f"ConfigMap {namespace}/{CONFIGURATION} {what}: the default Configuration")
        return Configuration()
    place = f"ConfigMap {namespace}/{CONFIGURATION}"
    text = seek(found, "data", CONFIGURATION_FILE)
    if not isinstance(text, str):
        raise InputError(place, f"data[{CONFIGURATION_FILE}]", "is missing")
    listed = list(parse(text, f"{place}, {CONFIGURATION_FILE}"))
    if len(listed) != 1:
        raise InputError(place, f"data[{CONFIGURATION_FILE}]", "must be one Configuration")
    return configuration.read(listed[0])
