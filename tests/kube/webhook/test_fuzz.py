"""Malformed reviews: whatever is sent, the webhook answers, and never with a defect of its own.

Each is answered with a verdict or with 400: a 500 would stop all writes of a kind, or let all pass,
by the failure policy. 100,000 in the whole campaign.
"""

import asyncio
import copy
import json
import os
import random
from http import HTTPStatus
from typing import Any
from unittest import mock

import pytest
from aiohttp import streams
from aiohttp.base_protocol import BaseProtocol
from aiohttp.test_utils import make_mocked_request

from aliquot.kube.webhook.metrics import Metrics
from aliquot.kube.webhook.service import Service
from tests.build.malformed import encoded, spoil
from tests.build.manifests import (
    KEP9,
    KOORDINATOR,
    composite,
    gang_job,
    gpu_quota,
    limited_pod,
    pod_group,
    profile,
    queue,
    quota,
    resource,
    task,
)
from tests.campaign import length
from tests.kube.webhook.writes import cluster, member, named

_REVIEWS = length(1000, 100_000)
_SEED = os.environ.get("ALIQUOT_FUZZ_SEED", "aliquot")
_SHARED_GPU = {f"tensor-fusion.ai/{key}": "10" for key in ("tflops-request", "vram-request")}
_LIMITED = {f"{KOORDINATOR}admission": '{"cpu": 4}', f"{KOORDINATOR}guaranteed": '{"cpu": 1}'}
_IN_GANG = {
    "gang.scheduling.koordinator.sh/name": "g",
    "gang.scheduling.koordinator.sh/min-available": "2",
    "gang.scheduling.koordinator.sh/groups": '["a/g"]',
    "aliquot.dev/topology-required": "example.com/rack",
}
_BRANCH = {"regexMatch": {"pattern": "^n-"}}
_TIER = {"tier": 1, "members": [{"type": "Node", "selector": _BRANCH}]}
_OBJECTS = (
    quota("a/q", {"cpu": 4}, {"cpu": 8}),
    quota("a/q", {"cpu": 4}, {"cpu": 8}, annotations={f"{KOORDINATOR}shared-weight": '{"cpu": 1}'}),
    member("m", "top"),
    member("top", is_parent=True),
    composite("c/c", ["a", "b"], {"cpu": 4}, {"cpu": 8}),
    queue("q", weight=2, capability={"cpu": 4}, deserved={"cpu": 2}, guarantee={}),
    pod_group("a/g", minMember=2, minResources={"cpu": 2}, queue="q"),
    pod_group("a/g", f"{KEP9}/v1alpha1", minMember=2),
    gang_job("a/j", task("t", 2, {"cpu": 1})),
    member("m", "top", annotations=_LIMITED),
    profile("kube-system/p", "z", "top"),
    resource("topology.volcano.sh/v1alpha1", "HyperNode", "h", spec=_TIER),
    limited_pod("a/p", {"cpu": 1}, annotations=_IN_GANG),
    gpu_quota("a/g", total={"requests": {"tflops": "10", "vram": "1Gi"}}),
    limited_pod("a/p", {"cpu": 1, "gpu": 1}, labels=named("m")),
    limited_pod("a/p", {"cpu": 1}, annotations=_SHARED_GPU),
)
_THERE = (*_OBJECTS[2:4], queue("root"), limited_pod("b/p", {"cpu": 1}, labels=named("m")))


def _review(rng: random.Random) -> dict[str, Any]:
    """A valid review of a creation, an update or a deletion."""
    new, old = copy.deepcopy(rng.choice(_OBJECTS)), copy.deepcopy(rng.choice(_OBJECTS))
    if rng.random() < 0.8:
        old = copy.deepcopy(new)
    operation = rng.choice(("CREATE", "UPDATE", "DELETE", "CONNECT"))
    group, _, version = new["apiVersion"].rpartition("/")
    request = {
        "uid": "7",
        "kind": {"group": group, "version": version, "kind": new["kind"]},
        "resource": {"group": group, "version": version, "resource": new["kind"].lower() + "s"},
        "operation": operation,
        "name": new["metadata"]["name"],
        "namespace": new["metadata"].get("namespace", ""),
        "subResource": rng.choice(("", "", "", "status", "resize")),
        "userInfo": {"username": "alice", "groups": ["a"], "extra": {"a": ["b"]}},
        "object": None if operation == "DELETE" else new,
        "oldObject": None if operation == "CREATE" else old,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def _malformed(rng: random.Random) -> bytes:
    body: Any = _review(rng)
    request = body["request"]
    for _ in range(rng.randrange(5)):
        where = rng.choice(("object", "object", "oldObject"))
        if request.get(where) is not None:
            request[where] = spoil(request[where], rng)
    if rng.random() < 0.3:
        body = spoil(body, rng)
    return encoded(body, rng)


def test_malformed_reviews_are_answered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("aliquot.kube.webhook.service._RETRY_SECONDS", 0.0)
    answers = asyncio.run(_campaign())
    assert sum(answers.values()) == 2 * _REVIEWS
    assert answers.keys() == {HTTPStatus.OK, HTTPStatus.BAD_REQUEST}
    assert min(answers.values()) > _REVIEWS / 10, "hardly any is read, or hardly any malformed"
    assert "cannot judge" not in capsys.readouterr().out


async def _campaign() -> dict[int, int]:
    rng = random.Random(_SEED)
    answers: dict[int, int] = {}
    services = [Service(cluster(*_THERE, policy=each), Metrics(), "x") for each in (None, "fair")]
    for service in services:
        service.ready = True
    for _ in range(_REVIEWS):
        content, service = _malformed(rng), rng.choice(services)
        for handle in (service._validate, service._mutate):
            answer = await handle(_posted(content))
            assert answer.status in (HTTPStatus.OK, HTTPStatus.BAD_REQUEST), content
            if answer.status == HTTPStatus.OK:
                assert isinstance(answer.body, bytes)
                assert "allowed" in json.loads(answer.body)["response"], content
            answers[answer.status] = answers.get(answer.status, 0) + 1
    return answers


def _posted(content: bytes) -> Any:
    loop = asyncio.get_running_loop()
    payload = streams.StreamReader(BaseProtocol(loop), 2**30, loop=loop)
    payload.feed_data(content)
    payload.feed_eof()
    headers = {"Content-Length": str(len(content))}
    request = make_mocked_request("POST", "/validate", headers, payload=payload)
    assert isinstance(request.protocol, mock.Mock)
    return request
