"""Parts of objects that are asked for by themselves: binding, eviction, scale, finalize, log."""

from aiohttp import web

from aliquot.server.api import Api
from aliquot.server.refusals import method_not_allowed
from aliquot.server.target import Target


class Parts:
    """Requests about parts of objects."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def answer(self, request: web.BaseRequest, at: Target) -> web.Response:
        """Do what a request asks for."""
        raise method_not_allowed()
