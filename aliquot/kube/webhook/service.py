"""The HTTP service that API servers call: `/validate` and `/mutate`.

Until the cache is filled, there is no verdict: requests about Aliquot's own kinds get status 503,
so that API servers refuse the writes, and pods are allowed. An error of the webhook itself is
logged and gets status 500: the failure policy decides about the write. Nothing is ever written
here, so a dry run needs no special care.
"""

import asyncio
import time
from collections.abc import Callable
from http import HTTPStatus

import structlog
from aiohttp import web

from aliquot.errors import InputError
from aliquot.kube.webhook import review
from aliquot.kube.webhook.cache import Cache
from aliquot.kube.webhook.defaults import patch
from aliquot.kube.webhook.metrics import Metrics
from aliquot.kube.webhook.past_the_scheduler import RESIZE
from aliquot.kube.webhook.request_objects import read_object
from aliquot.kube.webhook.review import ALLOWED, AdmissionRequest, Verdict
from aliquot.kube.webhook.verdict import OWN_KINDS, judge
from aliquot.listener import BodyError, Limits, read_body

LIMITS = Limits(body_seconds=10.0, body_bytes=8 * 2**20, connections=1024)
"""API servers accept 3 MiB for one object; a review holds two at most, and a little more. They wait
for at most 30 s, of the body and of the verdict, and some dozen connections each are enough."""
_RETRIES = 5
_RETRY_SECONDS = 0.1
"""Half a second in all for the watches to catch up: far below the 5 s that API servers wait."""

Judge = Callable[[AdmissionRequest], Verdict]
_log = structlog.get_logger()


class Service:
    """The webhook's HTTP service.

    Writes of users whose name begins with `trusted` are Aliquot's own, and always allowed.
    """

    def __init__(self, cache: Cache, metrics: Metrics, trusted: str) -> None:
        self.ready = False
        """Is the cache filled?"""
        self._cache = cache
        self._metrics = metrics
        self._trusted = trusted

    def application(self) -> web.Application:
        """The application with both paths."""
        application = web.Application()
        application.add_routes(
            [web.post("/validate", self._validate), web.post("/mutate", self._mutate)]
        )
        return application

    async def _validate(self, http_request: web.Request) -> web.Response:
        return await self._answer(http_request, self._judge, retry=True)

    async def _mutate(self, http_request: web.Request) -> web.Response:
        return await self._answer(http_request, self._fill_in, retry=False)

    async def _answer(self, http_request: web.Request, decide: Judge, retry: bool) -> web.Response:
        began = time.perf_counter()
        try:
            request = review.read(await read_body(http_request, LIMITS))
        except BodyError as error:
            return web.Response(status=error.code, text=f"{error}\n")
        except InputError as error:
            return web.Response(status=HTTPStatus.BAD_REQUEST, text=f"{error}\n")
        try:
            verdict = self._exempt(request) or await self._decided(request, decide, retry)
        except Exception:
            _log.exception("cannot judge", kind=request.kind, name=_path(request))
            self._metrics.count(request, "failed", time.perf_counter() - began)
            return web.Response(
                status=HTTPStatus.INTERNAL_SERVER_ERROR,
                text="a defect of the webhook; its log says more\n",
            )
        if verdict is None:
            self._metrics.count(request, "not ready", time.perf_counter() - began)
            return web.Response(
                status=HTTPStatus.SERVICE_UNAVAILABLE,
                text="not everything has been read yet; try again\n",
            )
        self._metrics.count(
            request, "refused" if verdict.refusal else "allowed", time.perf_counter() - began
        )
        if verdict.refusal:
            _log.info(
                "refused",
                kind=request.kind,
                name=_path(request),
                user=request.user,
                why=verdict.refusal,
            )
        body = review.answer(request, verdict)
        return web.Response(body=body, content_type="application/json")

    def _exempt(self, request: AdmissionRequest) -> Verdict | None:
        """The verdict on a write that is allowed without applying rules; None for others."""
        if request.part not in ("", RESIZE) or (
            self._trusted and request.user.startswith(self._trusted)
        ):
            return ALLOWED
        if not self.ready and request.kind not in OWN_KINDS:
            return Verdict(warnings=("Aliquot has just begun, and has not looked at this",))
        return None

    async def _decided(
        self, request: AdmissionRequest, decide: Judge, retry: bool
    ) -> Verdict | None:
        """The verdict; None while the cache is not filled.

        An object that a write depends on may have been created a moment before, and not be in the
        cache yet: so a write that breaks a rule is judged again when the cache has changed.
        """
        if not self.ready:
            return None
        verdict = decide(request)
        for _ in range(_RETRIES):
            if not retry or not verdict.refusal or verdict.code != HTTPStatus.FORBIDDEN:
                break
            version = self._cache.version
            await asyncio.sleep(_RETRY_SECONDS)
            if self._cache.version != version:
                verdict = decide(request)
        return verdict

    def _judge(self, request: AdmissionRequest) -> Verdict:
        return judge(self._cache, request)

    def _fill_in(self, request: AdmissionRequest) -> Verdict:
        """The defaults to fill in; an object that cannot be read is refused by /validate."""
        if request.new is None or request.is_leaving:
            return ALLOWED
        manifest = read_object(request.new).manifest
        if manifest is None:
            return ALLOWED
        return Verdict(patch=patch(self._cache, manifest, request.operation == "CREATE"))


def _path(request: AdmissionRequest) -> str:
    return f"{request.namespace}/{request.name}" if request.namespace else request.name
