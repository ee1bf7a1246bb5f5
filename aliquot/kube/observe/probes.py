"""The server for health probes and metrics, on a port of its own.

It runs in the background loop, so that probes are answered while the main loop is busy, and a busy
one can be told from a dead one. It must never ask the main loop or the engine for anything: it
reads `Health` and `Metrics` only. Who may read metrics is asked with a client of its own.
"""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from errno import EADDRINUSE
from http import HTTPStatus
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from aliquot.errors import InputError
from aliquot.kube.observe.decision_log import DecisionLog, answer
from aliquot.kube.observe.health import Check, Health
from aliquot.kube.observe.metrics_auth import MetricsAuth, serving_context
from aliquot.listener import Limits, listening

_INDEX = """\
/livez             is the main loop alive? (?verbose lists the checks)
/readyz            has everything been read? (?verbose lists the checks)
/healthz           the same as /livez
/metrics           for Prometheus
/debug/invariants  what the last check of the ledger found
/debug/decisions   what was decided, a line each (?pod=namespace/name, ?limit=100)
"""
_OPEN = ("/", "/livez", "/healthz", "/readyz")
"""The paths that need no token: kubelets have none."""
_LONGEST_NUMBER = 9
LIMITS = Limits(connections=256)
"""A kubelet and some Prometheus servers need a handful of connections."""


class Probes:
    """The server; port 0 takes any free port."""

    def __init__(
        self,
        health: Health,
        registry: CollectorRegistry,
        port: int,
        host: str | None = None,
        limits: Limits = LIMITS,
        auth: MetricsAuth | None = None,
        decision_log: DecisionLog | None = None,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        """With `auth`, all but the probes is protected, and everything is served over TLS."""
        self.port = port
        """The port it listens on, once it does."""
        self._health = health
        self._registry = registry
        self._host = host
        self._limits = limits
        self._auth = auth
        self._decision_log, self._leads = decision_log or DecisionLog(), leads
        self._scrape = asyncio.Lock()

    async def run(self) -> None:
        """Answer until cancelled."""
        runner = web.AppRunner(self._application(), handle_signals=False)
        tls = serving_context() if self._auth is not None else None
        client = self._auth.client if self._auth is not None else nullcontext()
        try:
            async with (
                client,
                listening(runner, self._host, self.port, self._limits, tls) as self.port,
            ):
                await asyncio.Event().wait()
        except OSError as error:
            problem = "address already in use" if error.errno == EADDRINUSE else str(error)
            raise InputError("probes", f"port {self.port}", problem) from error

    def _application(self) -> web.Application:
        application = web.Application(middlewares=[self._protect])
        application.add_routes(
            [
                web.get("/", self._index),
                web.get("/livez", _handler("livez", self._health.alive)),
                web.get("/healthz", _handler("healthz", self._health.alive)),
                web.get("/readyz", _handler("readyz", self._health.ready)),
                web.get("/metrics", self._metrics),
                web.get("/debug/invariants", self._invariants),
                web.get("/debug/decisions", self._decisions),
            ]
        )
        return application

    async def _index(self, request: web.Request) -> web.Response:
        return web.Response(text=_INDEX)

    @web.middleware
    async def _protect(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse who may not read a path that is not open."""
        if self._auth is not None and request.path not in _OPEN:
            header = request.headers.get("Authorization", "")
            code, problem = await self._auth.verdict(header, request.path)
            if code != HTTPStatus.OK:
                return web.Response(status=code, text=f"{problem}\n")
        return await handler(request)

    async def _metrics(self, request: web.Request) -> web.Response:
        """Encode in another thread: it may take long, and this thread renews the Lease."""
        encode, form = choose_encoder(request.headers.get("Accept", ""))
        async with self._scrape:
            text = await asyncio.to_thread(encode, self._registry)
        return web.Response(body=text, headers={"Content-Type": form})

    async def _invariants(self, request: web.Request) -> web.Response:
        found = self._health.found
        body: dict[str, Any] = {"checkedAt": None, "violations": []}
        if found is not None:
            body = {"checkedAt": found.at, "violations": found.violations}
        return web.Response(body=msgspec.json.encode(body), content_type="application/json")

    async def _decisions(self, request: web.Request) -> web.Response:
        """A line for each decision, after one that says whether this replica leads."""
        limit = request.query.get("limit", "0")
        if not limit.isdecimal() or len(limit) > _LONGEST_NUMBER:
            text = "limit: not a number of decisions\n"
            return web.Response(status=HTTPStatus.BAD_REQUEST, text=text)
        lines = self._decision_log.lines(request.query.get("pod", ""), int(limit))
        body = b"\n".join([*answer(lines, self._leads()), b""])
        return web.Response(body=body, content_type="application/x-ndjson")


def _handler(name: str, checks: Callable[[], list[Check]]) -> Callable[[web.Request], Any]:
    async def answer(request: web.Request) -> web.Response:
        found = checks()
        ok = all(check.ok for check in found)
        text = _report(name, found) if "verbose" in request.query or not ok else "ok"
        status = HTTPStatus.OK if ok else HTTPStatus.SERVICE_UNAVAILABLE
        return web.Response(text=text, status=status)

    return answer


def _report(name: str, checks: list[Check]) -> str:
    lines = [f"[{'+' if each.ok else '-'}]{each.name} {each.message}" for each in checks]
    verdict = "passed" if all(check.ok for check in checks) else "failed"
    return "\n".join([*lines, f"{name} check {verdict}", ""])
