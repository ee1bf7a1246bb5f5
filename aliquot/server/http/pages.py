"""Lists in pages: all pages show the same resource version, since entries never change.

The rest of a list is kept for a while under its continue token; after that the token is expired,
and the client lists anew.
"""

import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass

from aliquot.json import Body
from aliquot.server.http.refusals import bad_request, expired
from aliquot.server.storage.entry import Entry

_PREFIX = "page-"
"""Of every token: tells a foreign token from an expired one."""
_MOST = 200
"""Unfinished lists kept; entries are shared, so that each costs one reference an object."""
_SECONDS = 300.0
"""How long a token is valid: 5 minutes, as etcd's compaction gives it in Kubernetes."""


@dataclass(frozen=True, slots=True)
class _Rest:
    entries: list[Entry]
    start: int
    version: int
    about: object
    since: float


class Pages:
    """The lists that clients have not read to the end."""

    def __init__(self) -> None:
        self._rests: OrderedDict[str, _Rest] = OrderedDict()

    def first(
        self, entries: list[Entry], version: int, limit: int, about: object
    ) -> tuple[list[Entry], Body]:
        """The first page, and the metadata of its list."""
        return self._page(_Rest(entries, 0, version, about, time.monotonic()), limit)

    def next(self, token: str, limit: int, about: object) -> tuple[list[Entry], Body]:
        """The page of a continue token."""
        rest = self._rests.get(token)
        if not token.startswith(_PREFIX):
            raise bad_request("continue key is not valid: it is none of this server's")
        if rest is None or time.monotonic() - rest.since > _SECONDS:
            raise expired(
                "The provided continue parameter is too old to display a consistent list result. "
                "You can start a new list without the continue parameter."
            )
        if rest.about != about:
            raise bad_request("continue key is not valid for this list")
        return self._page(rest, limit)

    def _page(self, rest: _Rest, limit: int) -> tuple[list[Entry], Body]:
        end = rest.start + limit if limit else len(rest.entries)
        metadata: Body = {"resourceVersion": str(rest.version)}
        if end < len(rest.entries):
            metadata["continue"] = token = _PREFIX + secrets.token_urlsafe(24)
            metadata["remainingItemCount"] = len(rest.entries) - end
            self._rests[token] = _Rest(rest.entries, end, rest.version, rest.about, rest.since)
            while len(self._rests) > _MOST:
                self._rests.popitem(last=False)
        return rest.entries[rest.start : end], metadata
