"""What the kubelet, Prometheus and people ask a replica, on a port of its own.

It answers from the side thread, so that a busy main loop is told from a dead one. It must never ask
the main loop or the engine for anything: all it knows was left for it in `Health` and `Metrics`.
"""

import asyncio
from collections.abc import Callable
from errno import EADDRINUSE
from typing import Any

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from aliquot.errors import InputError
from aliquot.kube.observe.health import Check, Health

_WELL, _NOT_WELL = 200, 503
_INDEX = """\
/livez             is the main loop alive? (?verbose lists the checks)
/readyz            has everything been read? (?verbose lists the checks)
/healthz           the same as /livez
/metrics           for Prometheus
/debug/invariants  what the last check of the ledger found
"""


class Probes:
    """The server; port 0 takes any that is free."""

    def __init__(
        self, health: Health, registry: CollectorRegistry, port: int, host: str | None = None
    ) -> None:
        self.port = port
        """Where it listens, once it does."""
        self._health = health
        self._registry = registry
        self._host = host
        self._scraping = asyncio.Lock()

    async def run(self) -> None:
        """Answer until cancelled."""
        runner = web.AppRunner(self._application(), access_log=None, handle_signals=False)
        await runner.setup()
        try:
            await self._listen(runner)
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    async def _listen(self, runner: web.AppRunner) -> None:
        try:
            await web.TCPSite(runner, self._host, self.port).start()
        except OSError as error:
            problem = "address already in use" if error.errno == EADDRINUSE else str(error)
            raise InputError("probes", f"port {self.port}", problem) from error
        self.port = runner.addresses[0][1]

    def _application(self) -> web.Application:
        application = web.Application()
        application.add_routes(
            [
                web.get("/", self._index),
                web.get("/livez", _answering("livez", self._health.alive)),
                web.get("/healthz", _answering("healthz", self._health.alive)),
                web.get("/readyz", _answering("readyz", self._health.ready)),
                web.get("/metrics", self._metrics),
                web.get("/debug/invariants", self._invariants),
            ]
        )
        return application

    async def _index(self, request: web.Request) -> web.Response:
        return web.Response(text=_INDEX)

    async def _metrics(self, request: web.Request) -> web.Response:
        """In another thread, since it may take a while, and the Lease is renewed in this one."""
        encode, form = choose_encoder(request.headers.get("Accept", ""))
        async with self._scraping:
            text = await asyncio.to_thread(encode, self._registry)
        return web.Response(body=text, headers={"Content-Type": form})

    async def _invariants(self, request: web.Request) -> web.Response:
        found = self._health.found
        body: dict[str, Any] = {"checkedAt": None, "violations": []}
        if found is not None:
            body = {"checkedAt": found.at, "violations": found.violations}
        return web.Response(body=msgspec.json.encode(body), content_type="application/json")


def _answering(name: str, checks: Callable[[], list[Check]]) -> Callable[[web.Request], Any]:
    async def answer(request: web.Request) -> web.Response:
        found = checks()
        well = all(check.well for check in found)
        text = _words(name, found) if "verbose" in request.query or not well else "ok"
        return web.Response(text=text, status=_WELL if well else _NOT_WELL)

    return answer


def _words(name: str, checks: list[Check]) -> str:
    lines = [f"[{'+' if each.well else '-'}]{each.name} {each.words}" for each in checks]
    verdict = "passed" if all(check.well for check in checks) else "failed"
    return "\n".join([*lines, f"{name} check {verdict}", ""])
