"""The webhook on the wire: AdmissionReviews in, AdmissionReviews out."""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from aliquot.kube.webhook import service as service_module
from aliquot.kube.webhook.cache import Cache
from aliquot.kube.webhook.metrics import Metrics
from aliquot.kube.webhook.review import AdmissionRequest, Verdict, answer
from aliquot.kube.webhook.service import Service
from tests.build.manifests import limited_pod, queue, quota
from tests.kube.webhook.writes import asked, cluster, member

Body = dict[str, Any]
Post = Callable[[str, Any], Coroutine[Any, Any, tuple[int, Any]]]

BAD = quota("a/q", {"cpu": 4}, {"cpu": 2})


def review(body: Body, operation: str = "CREATE", old: Body | None = None, **more: Any) -> Body:
    group, _, version = body["apiVersion"].rpartition("/")
    request = {
        "uid": "7",
        "kind": {"group": group, "version": version, "kind": body["kind"]},
        "operation": operation,
        "name": body["metadata"]["name"],
        "namespace": body["metadata"].get("namespace", ""),
        "userInfo": {"username": "somebody"},
        "object": body if operation != "DELETE" else None,
        "oldObject": old,
        **more,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def served(
    cache: Cache, story: Callable[[Post, Service], Awaitable[None]], ready: bool = True
) -> None:
    async def run() -> None:
        service = Service(cache, Metrics(), "system:serviceaccount:aliquot-system:")
        service.ready = ready
        async with TestClient(TestServer(service.application())) as client:

            async def post(path: str, body: Any) -> tuple[int, Any]:
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                async with client.post(path, data=data) as response:
                    text = await response.text()
                    return response.status, json.loads(text) if response.status == 200 else text

            await story(post, service)

    asyncio.run(run())


def test_a_refusal_says_why() -> None:
    async def story(post: Post, service: Service) -> None:
        code, said = await post("/validate", review(BAD))
        assert code == 200
        assert said == {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": {
                "uid": "7",
                "allowed": False,
                "status": {
                    "code": 403,
                    "reason": "Forbidden",
                    "message": "spec.min[cpu]: min 4 is above max 2",
                },
            },
        }

    served(cluster(), story)


def test_defaults_come_as_a_patch() -> None:
    async def story(post: Post, service: Service) -> None:
        _, said = await post("/mutate", review(queue("q")))
        assert said["response"]["patchType"] == "JSONPatch"
        assert json.loads(base64.b64decode(said["response"]["patch"])) == [
            {"op": "add", "path": "/spec/weight", "value": 1},
            {"op": "add", "path": "/spec/reclaimable", "value": True},
        ]
        _, said = await post("/mutate", review(limited_pod("a/p")))
        assert said["response"] == {"uid": "7", "allowed": True}
        _, said = await post("/mutate", review({**queue("q"), "spec": 4}))
        assert said["response"] == {"uid": "7", "allowed": True}

    served(cluster(), story)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"{}", {"request": {}}, {**review(BAD), "apiVersion": "v1beta1"}, b"\xff"],
)
def test_what_is_no_review_is_refused_as_a_whole(body: Any) -> None:
    async def story(post: Post, service: Service) -> None:
        for path in ("/validate", "/mutate"):
            assert (await post(path, body))[0] == 400
        assert (await post("/elsewhere", body))[0] == 404

    served(cluster(), story)


def test_too_early_our_kinds_are_not_answered_and_pods_pass() -> None:
    async def story(post: Post, service: Service) -> None:
        assert (await post("/validate", review(quota("a/q"))))[0] == 503
        assert (await post("/mutate", review(queue("q"))))[0] == 503
        code, said = await post("/validate", review(limited_pod("a/p")))
        assert (code, said["response"]["allowed"]) == (200, True)
        assert said["response"]["warnings"]
        service.ready = True
        assert (await post("/validate", review(quota("a/q"))))[0] == 200

    served(cluster(), story, ready=False)


def test_our_own_writes_pass() -> None:
    async def story(post: Post, service: Service) -> None:
        user = {"username": "system:serviceaccount:aliquot-system:aliquot-scheduler"}
        _, said = await post("/validate", review(BAD, userInfo=user))
        assert said["response"]["allowed"]
        _, said = await post("/validate", review(BAD, subResource="status"))
        assert said["response"]["allowed"]

    served(cluster(), story)


def test_a_defect_is_not_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(cache: Cache, question: AdmissionRequest) -> Verdict:
        raise RuntimeError("a defect")

    async def story(post: Post, service: Service) -> None:
        assert (await post("/validate", review(quota("a/q"))))[0] == 500

    monkeypatch.setattr(service_module, "judge", fail)
    served(cluster(), story)


def test_news_may_come_a_moment_late() -> None:
    cache = cluster()

    async def story(post: Post, service: Service) -> None:
        child = asyncio.create_task(post("/validate", review(member("m", "top"))))
        await asyncio.sleep(0.05)
        known = cluster(member("top", is_parent=True))
        for each in known.quotas:
            cache.put(each)
        _, said = await child
        assert said["response"]["allowed"]
        _, said = await post("/validate", review(member("m", "other")))
        assert not said["response"]["allowed"]

    served(cache, story)


def test_warnings_stay_within_what_api_servers_pass_on() -> None:
    many = Verdict(warnings=tuple(f"{number} {'x' * 400}" for number in range(100)))
    said = json.loads(answer(asked("CREATE", quota("a/q")), many))["response"]["warnings"]
    assert all(len(each) <= 256 for each in said)
    assert 0 < sum(map(len, said)) <= 4096
    long = Verdict(refusal="y" * 10_000)
    status = json.loads(answer(asked("CREATE", quota("a/q")), long))["response"]["status"]
    assert len(status["message"]) <= 4096


@pytest.mark.parametrize(
    ("spoilt", "why"),
    [
        ({"object": {"metadata": {"name": "q"}}}, "request.object: Object 'kind' is missing"),
        ({"object": {**BAD, "kind": ""}}, "request.object: Object 'kind' is missing"),
        ({"object": {**BAD, "kind": 7}}, "request.object: kind must be text"),
        ({"object": {"kind": "ElasticQuota"}}, "request.object: Object 'apiVersion' is missing"),
        ({"oldObject": {"kind": "Pod"}}, "request.oldObject: Object 'apiVersion' is missing"),
        ({"oldObject": queue("q")}, "request.oldObject: is a Queue of scheduling.volcano.sh"),
        ({"kind": {"kind": "Pod", "version": "v1"}}, "is a ElasticQuota of scheduling.x-k8s.io"),
    ],
)
def test_a_review_of_an_object_that_is_not_what_it_says_is_a_bad_request(
    spoilt: Body, why: str
) -> None:
    async def story(post: Post, service: Service) -> None:
        for path in ("/validate", "/mutate"):
            code, said = await post(path, review(BAD, **spoilt))
            assert code == 400
            assert why in said

    served(cluster(), story)


@pytest.mark.parametrize("content", [b"\xff", b'{"kind": "\xff"}', b'{"a": "\xed\xa0\x80"}'])
def test_what_is_not_utf_8_is_a_bad_request(content: bytes) -> None:
    async def story(post: Post, service: Service) -> None:
        code, said = await post("/validate", content)
        assert code == 400
        assert said.startswith("AdmissionReview: cannot be read: ")

    served(cluster(), story)
