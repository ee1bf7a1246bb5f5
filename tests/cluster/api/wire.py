"""The API as it is on the wire: JSON in, codes and JSON out, over the official client's connection.

The client's own classes drop what they do not know and hide the rest; a test of an API server must
see the bodies themselves.
"""

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import kubernetes
import urllib3

from tests.cluster.api.objects import path_of

JSON = "application/json"
PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_TIMEOUT = urllib3.Timeout(connect=30, read=60)

Body = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What came back."""

    code: int
    body: Any
    headers: Any

    def refused(self, code: int, reason: str) -> Body:
        """The Status it must be, with this code and reason."""
        assert self.code == code, (self.code, self.body)
        status: Body = self.body
        assert status["kind"] == "Status"
        assert status["apiVersion"] == "v1"
        assert status["status"] == "Failure"
        assert (status["code"], status["reason"]) == (code, reason), status
        return status

    def done(self, code: int = 200) -> Body:
        """The body of what must have gone well."""
        assert self.code == code, (self.code, self.body)
        body: Body = self.body
        return body


class Stream:
    """A watch that is under way."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self.code = response.status
        self.end = response.shutdown
        """Ends it from another thread: whoever waits for an event there fails."""
        self._lines = self._read(response)

    def __iter__(self) -> Iterator[Body]:
        return self._lines

    def next(self) -> Body:
        """The next event: it fails if none comes in time."""
        return next(self._lines)

    def take(self, count: int) -> list[Body]:
        """The next events."""
        return [self.next() for _ in range(count)]

    def rest(self) -> list[Body]:
        """All events until the server ends the watch."""
        return list(self._lines)

    def until(self, name: str) -> list[Body]:
        """All events up to the first about the object of this name, and that one."""
        events = [self.next()]
        while events[-1]["object"]["metadata"].get("name") != name:
            events.append(self.next())
        return events

    @staticmethod
    def _read(response: urllib3.BaseHTTPResponse) -> Iterator[Body]:
        pending = b""
        for chunk in response.stream(amt=None):
            pending += chunk
            *lines, pending = pending.split(b"\n")
            yield from (json.loads(line) for line in lines if line)


class Wire:
    """A client of one server."""

    def __init__(self, kubeconfig: Path) -> None:
        self.client = kubernetes.config.new_client_from_config(str(kubeconfig))
        settings = self.client.configuration.auth_settings()
        self.authorization = {"Authorization": settings["BearerToken"]["value"]}
        self._host = self.client.configuration.host
        self._pool = self.client.rest_client.pool_manager

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content: str = JSON,
        accept: str = JSON,
        headers: dict[str, str] | None = None,
        **query: Any,
    ) -> Answer:
        """One request. Bytes go as they are, all else as JSON."""
        sent = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        said = {"Accept": accept, **(self.authorization if headers is None else headers)}
        if sent is not None:
            said["Content-Type"] = content
        response = self._pool.request(
            method, self._url(path, query), body=sent, headers=said, timeout=_TIMEOUT, retries=False
        )
        is_json = JSON in response.headers.get("Content-Type", "")
        answer = json.loads(response.data) if is_json else response.data.decode()
        return Answer(response.status, answer, response.headers)

    def get(self, path: str, **query: Any) -> Answer:
        return self.call("GET", path, **query)

    def post(self, path: str, body: Any, **query: Any) -> Answer:
        return self.call("POST", path, body, **query)

    def put(self, path: str, body: Any, **query: Any) -> Answer:
        return self.call("PUT", path, body, **query)

    def delete(self, path: str, body: Any = None, **query: Any) -> Answer:
        return self.call("DELETE", path, body, **query)

    def patch(self, path: str, body: Any, form: str = "merge", **query: Any) -> Answer:
        return self.call("PATCH", path, body, content=PATCHES[form], **query)

    def create(self, body: Body, **query: Any) -> Answer:
        """Send a new object to where its kind belongs."""
        return self.post(path_of(body, named=False), body, **query)

    def made(self, body: Body) -> Body:
        """An object that must be accepted, as it was made."""
        return self.create(body).done(201)

    def again(self, body: Body, subresource: str = "") -> Body:
        """The same object, read anew."""
        return self.get(path_of(body) + (f"/{subresource}" if subresource else "")).done()

    def rewrite(self, body: Body, change: Callable[[Body], None]) -> tuple[Body, Body]:
        """Read, change and write an object as clients do: again if somebody came in between."""
        while True:
            before = self.again(body)
            wanted = copy.deepcopy(before)
            change(wanted)
            answer = self.put(path_of(body), wanted)
            if answer.code != 409:
                return before, answer.done()

    def gone(self, body: Body) -> bool:
        """Is there no such object (any more)?"""
        return self.get(path_of(body)).code == 404

    @contextmanager
    def watch(self, path: str, **query: Any) -> Iterator[Stream]:
        """Watch until the block ends."""
        accept = query.pop("accept", JSON)
        query = {"timeoutSeconds": 30, **query, "watch": "true"}
        response = self._pool.request(
            "GET",
            self._url(path, query),
            headers={"Accept": accept, **self.authorization},
            preload_content=False,
            timeout=_TIMEOUT,
            retries=False,
        )
        try:
            yield Stream(response)
        finally:
            response.close()

    def _url(self, path: str, query: dict[str, Any]) -> str:
        words = {key: value for key, value in query.items() if value is not None}
        return f"{self._host}{path}" + (f"?{urlencode(words)}" if words else "")
