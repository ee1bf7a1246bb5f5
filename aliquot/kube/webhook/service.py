"""Answers API servers over HTTP: one path to judge, one to fill in.

Until everything has been read, nobody can judge: writes to our own kinds are not answered, so that
API servers refuse them, and pods are let through. A defect of ours is not answered either, and
logged: what becomes of the write is for the failure policy to say. Nothing is ever written here, so
that a dry run is like any other.
"""

import asyncio
import time
from collections.abc import Callable

import structlog
from aiohttp import web

from aliquot.errors import InputError
from aliquot.kube.webhook import review
from aliquot.kube.webhook.cache import Cache
from aliquot.kube.webhook.defaults import patch
from aliquot.kube.webhook.metrics import Metrics
from aliquot.kube.webhook.request_objects import reading
from aliquot.kube.webhook.review import ALLOWED, Asked, Verdict
from aliquot.kube.webhook.verdict import OURS, judge

_MOST_BYTES = 8 * 2**20
"""Twice what API servers take for one object, and a little more: a review may hold two."""
_LOOKS = 5
_LOOK_SECONDS = 0.1

Judge = Callable[[Asked], Verdict]
_log = structlog.get_logger()


class Service:
    """The webhook, as API servers see it.

    Writes of users whose name begins with `trusted` are our own, and pass.
    """

    def __init__(self, live: Cache, metrics: Metrics, trusted: str) -> None:
        self.ready = False
        """Has everything been read?"""
        self._live = live
        self._metrics = metrics
        self._trusted = trusted

    def application(self) -> web.Application:
        """What is to be served."""
        application = web.Application(client_max_size=_MOST_BYTES)
        application.add_routes(
            [web.post("/validate", self._validate), web.post("/mutate", self._mutate)]
        )
        return application

    async def _validate(self, request: web.Request) -> web.Response:
        return await self._answer(request, self._judge, patient=True)

    async def _mutate(self, request: web.Request) -> web.Response:
        return await self._answer(request, self._fill, patient=False)

    async def _answer(self, request: web.Request, decide: Judge, patient: bool) -> web.Response:
        began = time.perf_counter()
        content = await request.read()
        try:
            asked = review.read(content)
        except InputError as error:
            return web.Response(status=400, text=f"{error}\n")
        try:
            verdict = self._at_once(asked) or await self._decided(asked, decide, patient)
        except Exception:
            _log.exception("cannot judge", kind=asked.kind, name=_path(asked))
            self._metrics.count(asked, "failed", time.perf_counter() - began)
            return web.Response(status=500, text="a defect of the webhook; its log says more\n")
        if verdict is None:
            self._metrics.count(asked, "not ready", time.perf_counter() - began)
            return web.Response(status=503, text="not everything has been read yet; try again\n")
        self._metrics.count(
            asked, "refused" if verdict.refusal else "allowed", time.perf_counter() - began
        )
        if verdict.refusal:
            _log.info(
                "refused", kind=asked.kind, name=_path(asked), user=asked.user, why=verdict.refusal
            )
        body = review.answer(asked, verdict)
        return web.Response(body=body, content_type="application/json")

    def _at_once(self, asked: Asked) -> Verdict | None:
        """The verdict on what is not looked at any closer."""
        if asked.part or (self._trusted and asked.user.startswith(self._trusted)):
            return ALLOWED
        if not self.ready and asked.kind not in OURS:
            return Verdict(warnings=("Aliquot has just begun, and has not looked at this",))
        return None

    async def _decided(self, asked: Asked, decide: Judge, patient: bool) -> Verdict | None:
        """The verdict; None if it is too early for one.

        What a write depends on may have been written a moment before, and not be known yet: so
        before one is refused for that, there is a moment for the news to come in.
        """
        if not self.ready:
            return None
        verdict = decide(asked)
        for _ in range(_LOOKS):
            if not patient or not verdict.refusal or verdict.code != 403:
                break
            version = self._live.version
            await asyncio.sleep(_LOOK_SECONDS)
            if self._live.version != version:
                verdict = decide(asked)
        return verdict

    def _judge(self, asked: Asked) -> Verdict:
        return judge(self._live, asked)

    def _fill(self, asked: Asked) -> Verdict:
        """What is to be filled in; what cannot be read is for the other path to refuse."""
        if asked.new is None or asked.is_leaving:
            return ALLOWED
        manifest = reading(asked.new).manifest
        if manifest is None:
            return ALLOWED
        return Verdict(patch=patch(self._live, manifest, asked.operation == "CREATE"))


def _path(asked: Asked) -> str:
    return f"{asked.namespace}/{asked.name}" if asked.namespace else asked.name
