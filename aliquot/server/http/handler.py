"""The handler of all requests: authenticates, dispatches, and answers refusals as a Status.

No request stops the server: an unexpected error is logged and answered as an internal error.
"""

import hmac
import logging
from http import HTTPStatus

from aiohttp import web

from aliquot.errors import AliquotError, RefusalError
from aliquot.server.http import about, warnings
from aliquot.server.http.bodies import as_yaml, json_response, wants_yaml
from aliquot.server.http.refusals import internal, unauthorized
from aliquot.server.http.target import target
from aliquot.server.http.verbs import Verbs

logger = logging.getLogger(__name__)
_MOST_PATH = 8192
"""Characters of a path: far above any real one, whose names have at most 253."""


class Handler:
    """Answers requests that carry the token."""

    def __init__(self, verbs: Verbs, token: str) -> None:
        self._verbs = verbs
        self._expected = f"Bearer {token}".encode()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request, with the warnings that came up meanwhile."""
        warnings.begin()
        response = await self._handle(request)
        for text in () if response.prepared else warnings.headers():
            response.headers.add("Warning", text)
        return response

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            self._authenticate(request)
            return await self._answer(request)
        except RefusalError as refusal:
            return _refused(refusal)
        except (ConnectionError, TimeoutError, web.HTTPException):
            raise
        except AliquotError as error:
            return _refused(RefusalError(HTTPStatus.BAD_REQUEST, "BadRequest", str(error)))
        except Exception as error:
            logger.exception("%s %s", request.method, request.path[:200])
            return _refused(internal(type(error).__name__))

    def _authenticate(self, request: web.BaseRequest) -> None:
        given = request.headers.get("Authorization", "").encode("utf-8", "replace")
        if not hmac.compare_digest(given, self._expected):
            raise unauthorized()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if len(request.path) > _MOST_PATH:
            raise RefusalError(
                HTTPStatus.REQUEST_URI_TOO_LONG, "RequestURITooLong", "the path is too long"
            )
        found = about.respond(request, self._verbs.api.registry)
        if found is not None:
            return found
        response = await self._verbs.answer(request, target(request.path, self._verbs.api.registry))
        if isinstance(response, web.Response) and wants_yaml(request.headers.get("Accept", "")):
            return as_yaml(response)
        return response


def _refused(refusal: RefusalError) -> web.Response:
    headers = {}
    if seconds := (refusal.details or {}).get("retryAfterSeconds"):
        headers["Retry-After"] = str(seconds)
    return json_response(refusal.status(), refusal.code, headers)
