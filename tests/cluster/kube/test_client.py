"""The client: what it sends, what it makes of the answers, and what it says when there are none."""

import asyncio
import gc
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import aliquot
from aliquot.errors import ApiError, UnreachableError
from aliquot.kube.api.access import Access, find
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import CUSTOM, NODES, PODS, SECRETS, Resource
from tests.cluster.api.objects import binding, config_map, node, pod
from tests.cluster.api.servers import Server
from tests.cluster.api.wire import Wire
from tests.cluster.conftest import Unique
from tests.cluster.kube.kubeconfigs import AUTHORITY, SERVER, config, data, served_by
from tests.cluster.kube.scripted import (
    asking,
    hangs,
    hangs_up,
    refuses,
    says,
    status,
    streams,
)
from tests.cluster.kube.stories import story, until

MAPS = Resource("", "v1", "configmaps", "ConfigMap")


@story
async def test_objects_are_made_read_changed_and_deleted(server: Server, ns: str) -> None:
    where = MAPS.path(ns, "a")
    async with Client(find(server.kubeconfig)) as client:
        made = await client.post(MAPS.path(ns), config_map(ns, "a"))
        assert await client.get(where) == made
        changed = await client.put(where, {**made, "data": {"key": "other"}})
        assert changed["data"] == {"key": "other"}
        merged = await client.patch(where, {"data": {"more": "1"}})
        assert merged["data"] == {"key": "other", "more": "1"}
        strategic = await client.patch(where, {"data": {"key": None}}, "strategic")
        assert strategic["data"] == {"more": "1"}
        steps = [{"op": "replace", "path": "/data/more", "value": "2"}]
        assert (await client.patch(where, steps, "json"))["data"] == {"more": "2"}
        assert (await client.delete(where))["status"] == "Success"
        with pytest.raises(ApiError) as caught:
            await client.get(where)
    assert (caught.value.code, caught.value.reason) == (404, "NotFound")
    assert caught.value.details["name"] == "a"
    assert str(caught.value) == '404 NotFound: configmaps "a" not found'


@story
async def test_parts_of_objects(server: Server, api: Wire, ns: str, unique: Unique) -> None:
    to = unique("node")
    api.made(node(to))
    api.made(pod(ns, "a"))
    async with Client(find(server.kubeconfig)) as client:
        said = await client.post(PODS.path(ns, "a", "binding"), binding("a", to))
        assert said["status"] == "Success"
        assert (await client.get(PODS.path(ns, "a")))["spec"]["nodeName"] == to
        with pytest.raises(ApiError) as caught:
            await client.post(PODS.path(ns, "a", "binding"), binding("a", to))
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")


@story
async def test_queries(server: Server, ns: str) -> None:
    async with Client(find(server.kubeconfig)) as client:
        dry = {"dryRun": "All", "fieldManager": "me & you"}
        made = await client.post(MAPS.path(ns), config_map(ns, "a"), dry)
        assert made["metadata"]["name"] == "a"
        found = await client.get(MAPS.path(ns), {"fieldSelector": "metadata.name=a", "limit": 5})
        assert found["items"] == []


@story
async def test_a_wrong_token_is_refused(server: Server, tmp_path: Any) -> None:
    other = tmp_path / "kubeconfig"
    text = server.kubeconfig.read_text()
    token = next(line for line in text.splitlines() if "token:" in line)
    other.write_text(text.replace(token, token.split("token:")[0] + "token: wrong"))
    async with Client(find(other)) as client:
        with pytest.raises(ApiError) as caught:
            await client.get(SECRETS.path("default"))
    assert (caught.value.code, caught.value.reason) == (401, "Unauthorized")


@story
async def test_what_goes_with_a_request() -> None:
    async with asking(says({})) as (client, script):
        await client.post("/a", {"x": "é"}, {"q": "a b&c=d"})
        await client.patch("/a", [], "json")
        await client.get("/a")
        await client.delete("/a", b'{"raw": 1}')
    first, second, third, _ = script.asked
    assert first.headers["User-Agent"] == f"aliquot/{aliquot.__version__}"
    assert first.headers["Authorization"] == "Bearer a-token"
    assert first.headers["Content-Type"] == "application/json"
    assert first.headers["Accept"] == "application/json"
    assert "Accept-Encoding" not in first.headers
    assert dict(first.query) == {"q": "a b&c=d"}
    assert second.headers["Content-Type"] == "application/json-patch+json"
    assert "Content-Type" not in third.headers
    assert script.bodies == ['{"x":"é"}'.encode(), b"[]", b"", b'{"raw": 1}']


@story
async def test_the_clock_of_the_server_is_that_of_its_last_answer() -> None:
    dates = ["Wed, 21 Oct 2026 07:28:00 GMT", "in the evening"]
    async with asking(*(says({}, 200, {"Date": each}) for each in dates)) as (client, _):
        assert client.server_time is None
        await client.get("/a")
        assert client.server_time == 1_792_567_680 * 10**9
        await client.get("/a")
        assert client.server_time is None


@story
async def test_a_server_may_live_below_a_path() -> None:
    async with asking(says({})) as (client, script):
        below = Access(f"{script.url}/clusters/one", client._access.credentials)
        async with Client(below) as other:
            await other.get(NODES.path(name="n"))
            await other.get(NODES.path(), {"limit": 1})
    one = "/clusters/one/api/v1/nodes"
    assert [request.path for request in script.asked] == [f"{one}/n", one]


@pytest.mark.parametrize(
    ("step", "code", "reason", "message", "retry_after"),
    [
        (refuses(429, "TooManyRequests", Retry_After="7"), 429, "TooManyRequests", "no: 429", 7),
        (says(status(429, "", retryAfterSeconds=3), 429), 429, "", "no: 429", 3),
        (says(b"<html>busy</html>", 503), 503, "", "<html>busy</html>", None),
        (says(b"", 500), 500, "", "Internal Server Error", None),
        (says(b'{"message": "\xff"}', 503), 503, "", '{"message": "\ufffd"}', None),
        (says({"kind": "Pod"}, 500), 500, "", '{"kind": "Pod"}', None),
        (says(b"", 302, {"Location": "/elsewhere"}), 302, "", "Found", None),
        (says(b"x", 500, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}), 500, "", "x", None),
    ],
)
@story
async def test_refusals_say_what_the_server_says(
    step: Any, code: int, reason: str, message: str, retry_after: float | None
) -> None:
    async with asking(step) as (client, script):
        with pytest.raises(ApiError) as caught:
            await client.post("/a", {})
    error = caught.value
    assert (error.code, error.reason, error.message) == (code, reason, message)
    assert error.retry_after == retry_after
    assert len(script.asked) == 1


@pytest.mark.parametrize("answer", [b"<html>", b'{"a": "\xff"}', b"\xff\xfe"])
@story
async def test_an_answer_that_is_not_json(answer: bytes) -> None:
    async with asking(says(answer)) as (client, _):
        with pytest.raises(UnreachableError, match="not JSON"):
            await client.get("/a")
        assert await client.call("GET", "/a") == answer


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@story
async def test_a_write_is_sent_once_and_may_have_been_carried_out(method: str) -> None:
    async with asking(says({}), hangs_up) as (client, script):
        await client.get("/a")
        with pytest.raises(UnreachableError) as caught:
            await client.call(method, "/a", {})
        assert caught.value.sent
        assert [request.method for request in script.asked] == ["GET", method]


@story
async def test_a_read_may_be_sent_again() -> None:
    async with asking(says({}), hangs_up, says({"x": 1})) as (client, script):
        await client.get("/a")
        assert await client.get("/a") == {"x": 1}
    assert len(script.asked) == 3


@story
async def test_nobody_there() -> None:
    async with asking(says({})) as (client, script):
        await client.get("/a")
    credentials = client._access.credentials
    async with Client(Access(script.url, credentials)) as other:
        for method in ("GET", "POST", "PUT"):
            with pytest.raises(UnreachableError) as caught:
                await other.call(method, "/a", {})
            assert not caught.value.sent
            assert f"{method} {script.url}/a" in str(caught.value)


@story
async def test_no_answer_in_time() -> None:
    async with asking(says({}), hangs) as (client, _):
        await client.get("/a")  # connecting takes time of its own
        with pytest.raises(UnreachableError, match="no answer in time") as caught:
            await client.post("/a", {}, timeout=0.2)
    assert caught.value.sent


@story
async def test_no_turn_in_time_means_not_sent() -> None:
    async with asking(hangs, connections=1) as (client, script):
        first = asyncio.create_task(client.post("/first", {}))
        await until(lambda: script.asked)
        with pytest.raises(UnreachableError) as caught:
            await client.post("/second", {}, timeout=0.2)
        first.cancel()
        await asyncio.wait([first])
    assert not caught.value.sent
    assert [request.path for request in script.asked] == ["/first"]


@pytest.mark.parametrize("in_handshake", [True, False])
def test_a_request_that_is_given_up_leaves_no_connection_open(
    tmp_path: Path, in_handshake: bool
) -> None:
    """Not even one to a server that does not answer the end of the connection either."""

    async def ask(port: int, asked: threading.Event) -> None:
        known = {"certificate-authority-data": data(AUTHORITY.pem)}
        file = config(tmp_path / "config", {"server": f"https://127.0.0.1:{port}", **known})
        async with Client(find(file)) as client:
            asking = asyncio.create_task(client.get("/a"))
            await until(asked.is_set)
            asking.cancel()
            await asyncio.wait([asking])

    with warnings.catch_warnings(record=True) as leaks:
        warnings.simplefilter("always", ResourceWarning)
        with _silent(in_handshake) as (port, asked):
            asyncio.run(ask(port, asked))
            gc.collect()
    assert [str(leak.message) for leak in leaks] == []


@contextmanager
def _silent(in_handshake: bool) -> Iterator[tuple[int, threading.Event]]:
    """A server that says nothing more: from the handshake on, or after a request."""
    asked, over = threading.Event(), threading.Event()

    def serve(listening: socket.socket) -> None:
        accepted, _ = listening.accept()
        with accepted:
            if not in_handshake:
                tls = served_by(SERVER).wrap_socket(accepted, server_side=True)
                tls.recv(2**16)
            asked.set()
            over.wait()
            if not in_handshake:
                tls.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        try:
            yield listening.getsockname()[1], asked
        finally:
            over.set()
            thread.join()


@story
async def test_so_many_connections_and_no_more() -> None:
    now, most = 0, 0

    async def counts(request: web.Request) -> web.StreamResponse:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.02)
        now -= 1
        return web.json_response({})

    async with asking(counts, connections=4) as (client, script):
        await asyncio.gather(*(client.post("/a", {}) for _ in range(30)))
    assert (most, len(script.asked)) == (4, 30)


@story
async def test_streams_do_not_take_turns() -> None:
    steps = streams(b"x\n", then="hang"), says({})
    async with asking(*steps, connections=1) as (client, _), client.stream("/a") as lines:
        assert await anext(lines) == b"x"
        assert await client.get("/b") == {}


@story
async def test_streams_come_line_by_line() -> None:
    chunks = streams(b"a\nb", b"c\n\nd", b"e", b"\nrest")
    async with asking(chunks) as (client, _), client.stream("/a", {"watch": 1}) as lines:
        assert [line async for line in lines] == [b"a", b"bc", b"", b"de"]


@story
async def test_streams_that_are_refused_cut_or_silent() -> None:
    steps = (refuses(410, "Expired"), streams(b"a\n", then="cut"), streams(b"a\n", then="hang"))
    async with asking(*steps) as (client, _):
        with pytest.raises(ApiError, match="410 Expired"):
            async with client.stream("/a"):
                pass
        for _ in range(2):
            async with client.stream("/a", silence=1.0) as lines:
                assert await anext(lines) == b"a"
                with pytest.raises(UnreachableError):
                    await anext(lines)


def test_paths() -> None:
    assert PODS.path() == "/api/v1/pods"
    assert PODS.path("ns", "a", "binding") == "/api/v1/namespaces/ns/pods/a/binding"
    assert NODES.path(name="n.example.com") == "/api/v1/nodes/n.example.com"
    assert NODES.path(name="a/../b?c") == "/api/v1/nodes/a%2F..%2Fb%3Fc"
    queues = CUSTOM["queues.scheduling.volcano.sh"]
    assert queues.path(name="q") == "/apis/scheduling.volcano.sh/v1beta1/queues/q"
    assert not queues.namespaced
    assert all(key == each.full_name for key, each in CUSTOM.items())
