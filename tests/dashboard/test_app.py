"""The server of the page: what it answers, to whom, and what it keeps a browser from doing."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from aliquot.dashboard.access import Access
from aliquot.dashboard.app import Dashboard
from aliquot.dashboard.watched import Watched
from aliquot.engine import SECOND
from aliquot.engine.model.events import NodeSet, PodSet, QuotaSet
from aliquot.json import Body
from tests.build.values import node, pod, quota
from tests.dashboard.test_board import World


class Source:
    """A cluster of two teams that is all known."""

    notice = ""

    def __init__(self) -> None:
        world = World()
        world.apply(NodeSet(node("n", 4)), QuotaSet(quota("a/a", 2)), QuotaSet(quota("b/b", 2)))
        world.apply(PodSet(pod("p", 1, "a", node="n")), PodSet(pod("q", 1, "b", node="n")))
        world.apply(PodSet(pod("w", 9, "a")), PodSet(pod("x", 9, "b")))
        self.watched: Watched | None = world.watched

    def clock(self) -> int:
        return 5 * SECOND


class Oracle:
    """Repeats what it is asked."""

    async def explain(self, pod: str) -> Body:
        return {"pod": pod, "cures": [{"evicts": ["b/q"]}], "preemption": {"victims": ["b/q"]}}

    async def what_if(self, change: Body) -> Body:
        return {"change": change}


class Reviews:
    """An API server that knows two tokens: one for everything, one for namespace a."""

    async def post(self, path: str, body: Body) -> Body:
        spec = body["spec"]
        if body["kind"] == "TokenReview":
            known = spec["token"] in ("all", "team")
            return {"status": {"authenticated": known, "user": {"username": spec["token"]}}}
        asked = spec["resourceAttributes"]
        allowed = spec["user"] == "all" or (asked["resource"], asked["namespace"]) == ("pods", "a")
        return {"status": {"allowed": allowed}}


Ask = Callable[..., Awaitable[tuple[int, str, Any]]]


def served(story: Callable[[Ask], Awaitable[None]], protected: bool = False) -> None:
    """Run a story against a server of the page."""

    async def run() -> None:
        access = Access(Reviews(), lambda: ["a", "b"]) if protected else None  # type: ignore[arg-type]
        page = Dashboard(Source(), Oracle(), "127.0.0.1", access)
        async with page.serving(0) as port, aiohttp.ClientSession() as session:

            async def ask(path: str, method: str = "GET", **more: Any) -> tuple[int, str, Any]:
                url = f"http://127.0.0.1:{port}/{path}"
                async with session.request(method, url, **more) as answer:
                    if path == "api/stream" and answer.status == 200:
                        return 200, (await answer.content.readline()).decode(), answer.headers
                    return answer.status, await answer.text(), answer.headers

            await story(ask)

    asyncio.run(run())


def token(name: str) -> dict[str, Any]:
    return {"headers": {"Authorization": f"Bearer {name}"}}


def test_the_page_loads_nothing_from_elsewhere_and_cannot_be_framed() -> None:
    async def story(ask: Ask) -> None:
        for name in ("", "main.js", "style.css", "icon.svg"):
            status, text, headers = await ask(name)
            assert status == 200
            policy = headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert "//" not in text.replace("http://www.w3.org/", "") or name != ""
        status, text, _ = await ask("")
        assert "<script>" not in text
        assert "style=" not in text

    served(story)


def test_what_is_not_there_is_said() -> None:
    async def story(ask: Ask) -> None:
        assert (await ask("nothing.js"))[:2] == (404, "there is no nothing.js\n")
        assert (await ask("api/quota?name=c/c"))[:2] == (404, "there is no quota c/c\n")
        assert (await ask("api/node?name=z"))[:2] == (404, "there is no node z\n")

    served(story)


def test_a_stream_begins_with_everything() -> None:
    async def story(ask: Ask) -> None:
        _, line, _ = await ask("api/stream")
        body = json.loads(line.removeprefix("data: "))
        assert sorted(body["quotas"]["set"]) == ["a/a", "b/b"]
        assert body["cluster"]["waiting"] == 2

    served(story)


@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}],
)
def test_other_pages_may_not_ask(headers: dict[str, str]) -> None:
    async def story(ask: Ask) -> None:
        status, text, _ = await ask("api/history", headers=headers)
        assert status in (403, 421)
        assert "quotas" not in text

    served(story)


def test_what_if_takes_json_of_a_bounded_size() -> None:
    async def story(ask: Ask) -> None:
        status, text, _ = await ask("api/what-if", "POST", json={"addNodes": 1})
        assert (status, json.loads(text)) == (200, {"change": {"addNodes": 1}})
        assert (await ask("api/what-if", "POST", data=b"{"))[0] == 400
        assert (await ask("api/what-if", "POST", data=b" " * 2**19))[0] == 413
        assert (await ask("api/what-if", "PUT", json={}))[0] == 405

    served(story)


def test_without_a_token_nothing_is_shown() -> None:
    async def story(ask: Ask) -> None:
        for path in ("api/stream", "api/history", "api/quota?name=a/a", "api/explain?pod=a/w"):
            assert (await ask(path))[0] == 401
            assert (await ask(path, **token("unknown")))[0] == 401
        assert (await ask("main.js"))[0] == 200

    served(story, protected=True)


def test_a_token_shows_what_its_user_may_list() -> None:
    async def story(ask: Ask) -> None:
        _, line, _ = await ask("api/stream", **token("team"))
        body = json.loads(line.removeprefix("data: "))
        assert sorted(body["quotas"]["set"]) == ["a/a"]
        assert body["nodes"]["set"] == {}
        assert (body["cluster"]["total"], body["cluster"]["waiting"]) == ({}, 0)
        assert [row["pod"] for row in body["waiting"]["set"].values()] == ["a/w"]
        assert (await ask("api/quota?name=b/b", **token("team")))[0] == 403
        assert (await ask("api/explain?pod=b/x", **token("team")))[0] == 403
        assert (await ask("api/node?name=n", **token("team")))[0] == 403
        assert (await ask("api/what-if", "POST", json={}, **token("team")))[0] == 403
        _, text, _ = await ask("api/explain?pod=a/w", **token("team"))
        assert "b/q" not in text
        _, line, _ = await ask("api/stream", **token("all"))
        assert sorted(json.loads(line.removeprefix("data: "))["nodes"]["set"]) == ["n"]

    served(story, protected=True)
