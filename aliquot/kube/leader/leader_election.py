"""The election: one of several replicas holds a Lease, and only that one may write.

It runs in the side thread, so that a main loop that is busy deciding does not lose the Lease.
`holds()` is the fence that every write of the main loop asks: it turns false by itself when the
last renewal is too old, even if this thread hangs, so it must never wait for anything or be cached.
Whoever stops a replica must stop its writes first: `run` gives the Lease back when it is cancelled,
and a standby may take it in the same second. The rules themselves are in `tenure`.
"""

import asyncio
import math
import random
import secrets
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Protocol

import structlog

from aliquot.errors import ApiError, UnreachableError
from aliquot.json import Body
from aliquot.kube.leader.leader_rules import Candidate, Read, Term, Timing, Wait, Write

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""One that goes on while the machine sleeps: others do not wait for it to wake up."""
_STEPS = 4
"""Read and write, and once more if somebody else wrote in between."""
_CONFLICT, _NOT_FOUND = 409, 404
_log = structlog.get_logger(__name__)


class Requests(Protocol):
    """What the election needs of a client; one of its own, so that nobody is before it in line."""

    async def get(self, path: str) -> Any:
        """Read an object."""

    async def post(self, path: str, body: Any) -> Any:
        """Create one."""

    async def put(self, path: str, body: Any) -> Any:
        """Replace one."""


class Election:
    """A candidate for one Lease; `on_won` and `on_lost` are called in the loop that runs it."""

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
        self._told = False
        self._body: Body = {}
        self._trouble = ""

    def holds(self) -> bool:
        """May this replica write, right now? Safe in any thread."""
        return self._candidate.holds(_now())

    @property
    def leader(self) -> str:
        """Who holds the Lease, as last seen; empty if nobody does."""
        return "" if self._candidate.term is None else self._candidate.term.holder

    @property
    def transitions(self) -> int:
        """How often the Lease has changed hands."""
        return self._candidate.transitions

    async def run(self) -> None:
        """Stand for election, hold, and stand again, until cancelled; then give the Lease back."""
        try:
            while True:
                self._tell()
                pause = await self._round()
                self._tell()
                await asyncio.sleep(self._pause(pause))
        finally:
            self._candidate.leave()
            self._tell()
            await self._round()

    def _tell(self) -> None:
        """Call back, if this replica has won or lost since it last did."""
        holds = self.holds()
        if holds == self._told:
            return
        self._told = holds
        _log.info(
            "this replica leads" if holds else "this replica leads no longer",
            identity=self.identity,
            leader=self.leader,
            transitions=self.transitions,
        )
        (self._on_won if holds else self._on_lost)()

    def _pause(self, most: float) -> float:
        """Not in step with others, and not beyond the time when something happens by itself."""
        retry = self._timing.retry * random.uniform(0.75, 1.0)
        return min(retry, most, self._candidate.left(_now()) or math.inf)

    async def _round(self) -> float:
        """Get as far as possible in the time there is; the answer is how long to wait at most."""
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
            if error.code != _NOT_FOUND:
                raise
            self._body = {}
            self._candidate.saw(None, None, _now())
        else:
            self._body = body
            self._candidate.saw(_term(body), _version(body), _now())

    async def _write(self, step: Write) -> bool:
        """Was it accepted? If not, somebody else has changed the Lease."""
        sent = _now()
        try:
            body = await self._send(step)
        except ApiError as error:
            gone = error.code == _NOT_FOUND and step.version is not None
            if error.code != _CONFLICT and not gone:
                raise
            self._candidate.unsure()
            return False
        self._body = body
        self._candidate.wrote(step.term, _version(body), sent)
        return True

    async def _send(self, step: Write) -> Body:
        """The whole object, with its uid: one that was deleted must not come back by an update."""
        body = {**self._body, "spec": {**(self._body.get("spec") or {}), **_spec(step.term)}}
        if step.version is None:
            body["apiVersion"], body["kind"] = "coordination.k8s.io/v1", "Lease"
            body["metadata"] = {"name": self._name}
            answer: Body = await self._client.post(self._folder, body)
        else:
            answer = await self._client.put(f"{self._folder}/{self._name}", body)
        return answer

    def _warn(self, error: Exception) -> None:
        """Once, not every two seconds."""
        trouble = str(error) or type(error).__name__
        if trouble != self._trouble:
            self._trouble = trouble
            _log.warning("the lease cannot be had", lease=self._name, error=trouble)


def _now() -> float:
    return time.clock_gettime(_CLOCK)


def _version(body: Body) -> str:
    return str(body["metadata"]["resourceVersion"])


def _term(body: Body) -> Term:
    """People edit Leases, too: whatever is missing is as if it was never written."""
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
