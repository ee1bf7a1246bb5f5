"""Leader election: one of several replicas holds a Lease, and only that one may write.

It runs in the background loop, so that a main loop that is busy in a cycle does not lose the Lease.
`holds()` is the fence that is asked before every write of the main loop: it turns false by itself
when the last renewal is too old, even if this thread hangs, so it must never wait or be cached.
A replica must stop its writes before `run` is cancelled: `run` then gives the Lease back, and a
standby may take it in the same second. The rules themselves are in `leader_rules`.
"""

import asyncio
import math
import random
import secrets
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Protocol

import structlog

from aliquot.errors import ApiError, UnreachableError
from aliquot.json import Body
from aliquot.kube.leader.leader_rules import Candidate, Read, Term, Timing, Wait, Write

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that counts while the machine is suspended: the standby does not wait for it."""
_STEPS = 4
"""Read and write, and once more if another replica wrote in between."""
_log = structlog.get_logger(__name__)


class Requests(Protocol):
    """What the election needs of a client, which must be its own: it never waits for others."""

    async def get(self, path: str) -> Any:
        """Read an object."""

    async def post(self, path: str, body: Any) -> Any:
        """Create one."""

    async def put(self, path: str, body: Any) -> Any:
        """Replace one."""


class Election:
    """The election as one replica sees it; `on_won`, `on_lost` are called in its own loop."""

    def __init__(
        self,
        client: Requests,
        namespace: str,
        name: str,
        *,
        on_won: Callable[[], None],
        on_lost: Callable[[], None],
        timing: Timing | None = None,
    ) -> None:
        self.identity = f"{socket.gethostname()}_{secrets.token_hex(4)}"
        self._client = client
        self._folder = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._name = name
        self._timing = timing or Timing()
        self._candidate = Candidate(self.identity, self._timing)
        self._on_won, self._on_lost = on_won, on_lost
        self._reported = False
        self._body: Body = {}
        self._trouble = ""

    def holds(self) -> bool:
        """May this replica write, right now? Safe in any thread."""
        return self._candidate.holds(_now())

    @property
    def leader(self) -> str:
        """The identity of the Lease's holder, as last seen; empty if it has none."""
        return "" if self._candidate.term is None else self._candidate.term.holder

    @property
    def transitions(self) -> int:
        """How often the Lease has changed hands."""
        return self._candidate.transitions

    async def run(self) -> None:
        """Acquire and renew the Lease until cancelled; then give it back."""
        try:
            while True:
                self._report()
                pause = await self._round()
                self._report()
                await asyncio.sleep(self._pause(pause))
        finally:
            self._candidate.leave()
            self._report()
            await self._round()

    def _report(self) -> None:
        """Log and call back, if this replica has won or lost the Lease since the last call."""
        holds = self.holds()
        if holds == self._reported:
            return
        self._reported = holds
        _log.info(
            "this replica leads" if holds else "this replica leads no longer",
            identity=self.identity,
            leader=self.leader,
            transitions=self.transitions,
        )
        (self._on_won if holds else self._on_lost)()

    def _pause(self, most: float) -> float:
        """Seconds to wait, with jitter, but never beyond the end of a hold or of a wait."""
        retry = self._timing.retry * random.uniform(0.75, 1.0)
        return min(retry, most, self._candidate.left(_now()) or math.inf)

    async def _round(self) -> float:
        """Try to acquire or renew, within the deadline; returns how long to wait at most."""
        limit = self._timing.deadline / 2
        try:
            async with asyncio.timeout(min(limit, self._candidate.left(_now()) or limit)):
                pause = await self._proceed()
        except (ApiError, UnreachableError, TimeoutError) as error:
            self._candidate.unsure()
            self._warn(error)
            return math.inf
        self._trouble = ""
        return pause

    async def _proceed(self) -> float:
        for _ in range(_STEPS):
            step = self._candidate.step(_now(), datetime.now(UTC))
            if isinstance(step, Wait):
                return step.seconds
            if isinstance(step, Read):
                await self._read()
            elif await self._write(step):
                return math.inf
        return math.inf

    async def _read(self) -> None:
        try:
            body = await self._client.get(f"{self._folder}/{self._name}")
        except ApiError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            self._body = {}
            self._candidate.saw(None, None, _now())
        else:
            self._body = body
            self._candidate.saw(_term(body), _version(body), _now())

    async def _write(self, step: Write) -> bool:
        """Returns whether the write was accepted; if not, another writer changed the Lease."""
        sent = _now()
        try:
            body = await self._send(step)
        except ApiError as error:
            gone = error.code == HTTPStatus.NOT_FOUND and step.version is not None
            if error.code != HTTPStatus.CONFLICT and not gone:
                raise
            self._candidate.unsure()
            return False
        self._body = body
        self._candidate.wrote(step.term, _version(body), sent)
        return True

    async def _send(self, step: Write) -> Body:
        """Send the whole object, with its uid: a PUT must not recreate a deleted Lease."""
        body = {**self._body, "spec": {**(self._body.get("spec") or {}), **_spec(step.term)}}
        if step.version is None:
            body["apiVersion"], body["kind"] = "coordination.k8s.io/v1", "Lease"
            body["metadata"] = {"name": self._name}
            answer: Body = await self._client.post(self._folder, body)
        else:
            answer = await self._client.put(f"{self._folder}/{self._name}", body)
        return answer

    def _warn(self, error: Exception) -> None:
        """Log an error once, not at every retry."""
        trouble = str(error) or type(error).__name__
        if trouble != self._trouble:
            self._trouble = trouble
            _log.warning("the lease cannot be had", lease=self._name, error=trouble)


def _now() -> float:
    return time.clock_gettime(_CLOCK)


def _version(body: Body) -> str:
    return str(body["metadata"]["resourceVersion"])


def _term(body: Body) -> Term:
    """The spec of a Lease; people edit Leases, so each field may be missing."""
    spec = body.get("spec") or {}
    return Term(
        spec.get("holderIdentity") or "",
        spec.get("leaseDurationSeconds"),
        spec.get("acquireTime"),
        spec.get("renewTime"),
        spec.get("leaseTransitions") or 0,
    )


def _spec(term: Term) -> Body:
    return {
        "holderIdentity": term.holder,
        "leaseDurationSeconds": term.seconds,
        "acquireTime": term.acquired,
        "renewTime": term.renewed,
        "leaseTransitions": term.transitions,
    }
