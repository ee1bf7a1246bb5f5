"""Who may see what: the API server says so of the token that a page sends.

Without `--auth kubernetes` the page shows everything, to whom can reach it: by default that is this
machine. With it, a token sees what its user may list: pods in all namespaces or in some, nodes,
queues. Answers are kept for a short while, and asked anew for as long as a page is open.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus

from aliquot.errors import ApiError, UnreachableError
from aliquot.json import Body
from aliquot.kube.api.client import Client
from aliquot.kube.api.reviews import may, user_of

KEPT_SECONDS = 60.0
"""How long an answer is believed: a role that is taken away shows as soon."""
_MOST_KEPT = 200
_AT_ONCE = 10
"""Questions to the API server under way at a time: a user may have hundreds of namespaces."""


class RefusedError(Exception):
    """A request that may not be answered; `status` is its HTTP status."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Rights:
    """What may be shown: everything, or the pods of some namespaces, nodes, cluster-wide quotas."""

    everywhere: bool = True
    namespaces: frozenset[str] = frozenset()
    nodes: bool = True
    queues: bool = True

    @property
    def everything(self) -> bool:
        """Is nothing left out?"""
        return self.everywhere and self.nodes and self.queues

    def shows(self, part: str, key: str) -> bool:
        """May this row be shown? Keys of waiting pods and of quotas begin with their namespace."""
        if part == "nodes":
            return self.nodes
        if part == "loans":
            _, lender, borrower = key.split(">", 2)
            return self.shows_name(lender) and self.shows_name(borrower)
        return self.shows_name(key)

    def shows_name(self, name: str) -> bool:
        """May something of this name be shown: `namespace/name`, or a name of the cluster?"""
        namespace, slash, _ = name.partition("/")
        if not slash:
            return self.queues
        return self.everywhere or namespace in self.namespaces


EVERYTHING = Rights()


class Access:
    """Asks the API server about tokens."""

    def __init__(self, client: Client, namespaces: Callable[[], Iterable[str]]) -> None:
        self._client = client
        self._namespaces = namespaces
        self._kept: OrderedDict[bytes, tuple[Rights, float]] = OrderedDict()
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def rights(self, header: str) -> Rights:
        """What the bearer of this Authorization header may see; raises `RefusedError`."""
        token = header.removeprefix("Bearer ").strip()
        if not header.startswith("Bearer ") or not token:
            raise RefusedError(HTTPStatus.UNAUTHORIZED, "a bearer token is needed")
        key = hashlib.sha256(token.encode()).digest()
        known = self._kept.get(key)
        if known is not None and time.monotonic() < known[1]:
            return known[0]
        try:
            found = await self._ask(token)
        except (ApiError, UnreachableError) as error:
            problem = f"the API server cannot say: {error}"
            raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, problem) from error
        self._kept[key] = (found, time.monotonic() + KEPT_SECONDS)
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return found

    async def _ask(self, token: str) -> Rights:
        user = await user_of(self._client, token)
        if user is None:
            problem = "the API server does not know this token"
            raise RefusedError(HTTPStatus.UNAUTHORIZED, problem)
        everywhere, nodes, queues = await asyncio.gather(
            self._may_list(user, "", "pods"),
            self._may_list(user, "", "nodes"),
            self._may_list(user, "scheduling.volcano.sh", "queues"),
        )
        namespaces: list[str] = []
        if not everywhere:
            known = sorted(set(self._namespaces()))
            may = await asyncio.gather(*(self._may_list(user, "", "pods", ns) for ns in known))
            namespaces = [ns for ns, allowed in zip(known, may, strict=True) if allowed]
        if not everywhere and not namespaces:
            problem = "this token may list pods in no namespace"
            raise RefusedError(HTTPStatus.FORBIDDEN, problem)
        return Rights(everywhere, frozenset(namespaces), nodes, queues)

    async def _may_list(self, user: Body, group: str, resource: str, namespace: str = "") -> bool:
        asked = {"verb": "list", "group": group, "resource": resource, "namespace": namespace}
        async with self._slots:
            return await may(self._client, user, {"resourceAttributes": asked})
