"""Who may read metrics: the API server says so, as kube-rbac-proxy asks it.

A request carries a bearer token. A TokenReview says whose it is, a SubjectAccessReview whether
that user may `get` the path, such as `/metrics`; the answer is kept for a short while. The server
that asks here runs over TLS, with a certificate of its own that nothing else trusts: a token must
not go over the network in the clear.
"""

import datetime
import hashlib
import ssl
import time
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus

from aliquot import certificates
from aliquot.errors import ApiError, UnreachableError
from aliquot.kube.api.client import Client
from aliquot.kube.api.reviews import may, user_of

_ALLOWED_SECONDS = 60.0
"""How long a yes is believed: Prometheus asks once or twice a minute."""
_REFUSED_SECONDS = 10.0
"""How long a no is believed: an administrator who grants the role need not wait for long."""
_MOST_KEPT = 1000
"""Answers kept: a guess at tokens must not fill the memory."""
_LONGEST_TOKEN = 8192
"""Characters: the most that a header has room for."""
_LIFETIME = datetime.timedelta(days=3650)
"""Of the certificate: ten years, longer than any process runs; each makes its own."""
_SCHEME = "Bearer "

Verdict = tuple[HTTPStatus, str]
ALLOWED: Verdict = (HTTPStatus.OK, "")


class MetricsAuth:
    """Asks the API server about tokens; `client` is of the event loop in which it is asked."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self.client = client
        self._clock = clock
        self._kept: OrderedDict[tuple[bytes, str], tuple[Verdict, float]] = OrderedDict()

    async def verdict(self, header: str, path: str) -> Verdict:
        """200 if the bearer of this Authorization header may get the path; else why not."""
        token = header.removeprefix(_SCHEME).strip()
        if not header.startswith(_SCHEME) or not token or len(token) > _LONGEST_TOKEN:
            return HTTPStatus.UNAUTHORIZED, "a bearer token is needed"
        key = (hashlib.sha256(token.encode()).digest(), path)
        known = self._kept.get(key)
        if known is not None and self._clock() < known[1]:
            return known[0]
        try:
            found = await self._ask(token, path)
        except (ApiError, UnreachableError) as error:
            return HTTPStatus.SERVICE_UNAVAILABLE, f"the API server cannot say: {error}"
        seconds = _ALLOWED_SECONDS if found == ALLOWED else _REFUSED_SECONDS
        self._kept[key] = (found, self._clock() + seconds)
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return found

    async def _ask(self, token: str, path: str) -> Verdict:
        user = await user_of(self.client, token)
        if user is None:
            return HTTPStatus.UNAUTHORIZED, "the API server does not know this token"
        asked = {"nonResourceAttributes": {"path": path, "verb": "get"}}
        if await may(self.client, user, asked):
            return ALLOWED
        return HTTPStatus.FORBIDDEN, f"{user['user']} may not get {path}"


def serving_context() -> ssl.SSLContext:
    """A TLS context with a certificate that is made now, and that nothing trusts."""
    now = datetime.datetime.now(datetime.UTC)
    authority = certificates.make_authority("aliquot-metrics", now, _LIFETIME)
    pair = certificates.issue_serving(authority, "aliquot-metrics", ("localhost",), now, _LIFETIME)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    pair.load_into(context)
    return context
