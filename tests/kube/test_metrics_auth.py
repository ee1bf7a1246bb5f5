"""Who may read metrics that are protected: as the API server says, over TLS."""

import asyncio
import ssl
from typing import Any

import aiohttp
import pytest

from aliquot.errors import ApiError, UnreachableError
from aliquot.json import Body
from aliquot.kube.observe.background_loop import BackgroundLoop
from aliquot.kube.observe.health import Health
from aliquot.kube.observe.metrics import Metrics
from aliquot.kube.observe.metrics_auth import ALLOWED, MetricsAuth
from aliquot.kube.observe.probes import Probes

PROMETHEUS: Body = {
    "username": "system:serviceaccount:monitoring:prometheus",
    "uid": "7",
    "groups": ["system:serviceaccounts"],
    "extra": {"pod": ["p"]},
}
USERS = {"good": PROMETHEUS, "other": {"username": "alice"}}


class Server:
    """Answers reviews; as a client of itself."""

    def __init__(self) -> None:
        self.asked: list[Body] = []
        self.error: Exception | None = None
        self.entered = False

    async def __aenter__(self) -> "Server":
        self.entered = True
        return self

    async def __aexit__(self, *_: object) -> None:
        self.entered = False

    async def post(self, path: str, body: Body) -> Body:
        self.asked.append(body)
        if self.error is not None:
            raise self.error
        spec = body["spec"]
        if body["kind"] == "TokenReview":
            assert path == "/apis/authentication.k8s.io/v1/tokenreviews"
            user = USERS.get(spec["token"])
            return {"status": {"authenticated": user is not None, "user": user}}
        assert path == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return {"status": {"allowed": spec["user"] == PROMETHEUS["username"]}}


def asked(server: Server, *headers: str, times: tuple[float, ...] = ()) -> list[Any]:
    """The verdicts on these headers, at these times."""
    now = [0.0]

    async def story() -> list[Any]:
        auth = MetricsAuth(server, lambda: now[0])  # type: ignore[arg-type]
        found = []
        for number, header in enumerate(headers):
            now[0] = times[number] if times else 0.0
            found.append(await auth.verdict(header, "/metrics"))
        return found

    return asyncio.run(story())


def test_a_user_who_may_get_metrics_is_let_in_and_all_of_it_is_asked() -> None:
    server = Server()
    assert asked(server, "Bearer good") == [ALLOWED]
    assert server.asked[1]["spec"] == {
        "user": PROMETHEUS["username"],
        "uid": "7",
        "groups": ["system:serviceaccounts"],
        "extra": {"pod": ["p"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("", 401),
        ("Bearer ", 401),
        ("Basic good", 401),
        ("Bearer " + "x" * 9000, 401),
        ("Bearer unknown", 401),
        ("Bearer other", 403),
    ],
)
def test_others_are_not(header: str, code: int) -> None:
    assert asked(Server(), header)[0][0] == code


def test_answers_are_kept_for_a_while() -> None:
    server = Server()
    asked(server, "Bearer good", "Bearer good", "Bearer good", times=(0, 59, 61))
    assert len(server.asked) == 4
    server = Server()
    asked(server, "Bearer other", "Bearer other", "Bearer other", times=(0, 9, 11))
    assert len(server.asked) == 4


@pytest.mark.parametrize("error", [ApiError(500, "x", "y"), UnreachableError("x", sent=True)])
def test_while_the_api_server_cannot_say_nothing_is_served(error: Exception) -> None:
    server = Server()
    server.error = error
    assert [code for code, _ in asked(server, "Bearer good", "Bearer good")] == [503, 503]
    assert len(server.asked) == 2, "an error is not kept"


def test_guesses_do_not_fill_the_memory() -> None:
    async def story() -> int:
        auth = MetricsAuth(Server())  # type: ignore[arg-type]
        for number in range(1500):
            await auth.verdict(f"Bearer {number}", "/metrics")
        return len(auth._kept)

    assert asyncio.run(story()) == 1000


def test_metrics_are_protected_and_probes_are_not() -> None:
    async def story() -> None:
        server = Server()
        auth = MetricsAuth(server)  # type: ignore[arg-type]
        probes = Probes(Health(), Metrics().registry, 0, "127.0.0.1", auth=auth)
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        async with BackgroundLoop(probes.run), aiohttp.ClientSession() as session:
            while not probes.port:
                await asyncio.sleep(0.01)

            async def get(path: str, token: str = "") -> int:
                headers = {"Authorization": f"Bearer {token}"} if token else {}
                url = f"https://127.0.0.1:{probes.port}{path}"
                async with session.get(url, headers=headers, ssl=context) as answer:
                    await answer.read()
                    return answer.status

            for path in ("/", "/livez", "/readyz", "/healthz"):
                assert await get(path) == 200
            for path in ("/metrics", "/debug/invariants"):
                assert [await get(path, token) for token in ("", "other", "good")] == [
                    401,
                    403,
                    200,
                ]
            assert await get("/nothing") == 401
            assert server.entered
        assert not server.entered

    asyncio.run(story())
