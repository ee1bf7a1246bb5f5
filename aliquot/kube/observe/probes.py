"""The server for health probes and metrics, on a port of its own.

It runs in the background loop, so that probes are answered while the main loop is busy, and a busy
one can be told from a dead one. It must never ask the main loop or the engine for anything: it
reads `Health` and `Metrics` only.
"""

import asyncio
from collections.abc import Callable
from errno import EADDRINUSE
from http import HTTPStatus
from typing import Any

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from aliquot.errors import InputError
from aliquot.kube.observe.health import Check, Health
from aliquot.listener import Limits, listening

_INDEX = """\
/livez             is the main loop alive? (?verbose lists the checks)
/readyz            has everything been read? (?verbose lists the checks)
/healthz           the same as /livez
/metrics           for Prometheus
/debug/invariants  what the last check of the ledger found
"""
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
    ) -> None:
        self.port = port
        """The port it listens on, once it does."""
        self._health = health
        self._registry = registry
        self._host = host
        self._limits = limits
        self._scrape = asyncio.Lock()

    async def run(self) -> None:
        """Answer until cancelled."""
        runner = web.AppRunner(self._application(), handle_signals=False)
        try:
            async with listening(runner, self._host, self.port, self._limits) as self.port:
                await asyncio.Event().wait()
        except OSError as error:
            problem = "address already in use" if error.errno == EADDRINUSE else str(error)
            raise InputError("probes", f"port {self.port}", problem) from error

    def _application(self) -> web.Application:
        application = web.Application()
        application.add_routes(
            [
                web.get("/", self._index),
                web.get("/livez", _handler("livez", self._health.alive)),
                web.get("/healthz", _handler("healthz", self._health.alive)),
                web.get("/readyz", _handler("readyz", self._health.ready)),
                web.get("/metrics", self._metrics),
                web.get("/debug/invariants", self._invariants),
            ]
        )
        return application

    async def _index(self, request: web.Request) -> web.Response:
        return web.Response(text=_INDEX)

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
