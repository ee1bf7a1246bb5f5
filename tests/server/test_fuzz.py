"""Malformed objects: whatever is sent, the server answers, never with a defect, and goes on.

The handler of all requests is called as the listener calls it, with objects, patches, paths,
queries and headers that are spoiled; controllers, admission and storage run as they always do. A
defect would be an answer of 500, a line in the log, or a server that no longer answers. 100,000 in
the whole campaign; some go over a socket, to see that bytes on the wire change nothing.
"""

import asyncio
import copy
import json
import logging
import os
import random
from collections import Counter
from typing import Any
from unittest import mock
from urllib.parse import quote

import aiohttp
import pytest
from aiohttp import streams, web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.test_utils import make_mocked_request

from aliquot.server.app import Server, Settings, running
from aliquot.server.http.handler import Handler
from aliquot.server.http.verbs import Verbs
from tests.build.malformed import ODD, WORDS, encoded, spoil
from tests.build.manifests import pod
from tests.campaign import length
from tests.server.client import MAPS, PODS, Client, config, connected

_REQUESTS = length(1000, 100_000)
_ON_THE_WIRE = length(100, 2000)
_SEED = os.environ.get("ALIQUOT_FUZZ_SEED", "aliquot")
_METHODS = ("GET", "POST", "POST", "PUT", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW")
_WRITES = ("POST", "POST", "PUT", "PUT", "PATCH", "PATCH", "PATCH", "DELETE", "GET")
_FORMS = (
    *("application/json",) * 12,
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "text/plain",
    "",
    "application/json; charset=latin-1",
)
_PATCHES = (
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_QUERIES = (
    *("labelSelector", "fieldSelector", "limit", "continue", "dryRun", "resourceVersion"),
    *("resourceVersionMatch", "watch", "timeoutSeconds", "sendInitialEvents", "fieldManager"),
    *("force", "fieldValidation", "gracePeriodSeconds", "propagationPolicy", "orphanDependents"),
    *("includeObject", "pretty", "allowWatchBookmarks", "timeout", "x"),
)
_WORTHY = (
    *("a=b", "a in (b,c)", "!a", "a!=b,c notin (d)", "metadata.name=m", "spec.nodeName=node-0"),
    *(
        "status.phase=Running",
        "0",
        "1",
        "5",
        "page-x",
        "All",
        "Strict",
        "Ignore",
        "true",
        "kubectl",
    ),
    *("Background", "Foreground", "Orphan", "Exact", "NotOlderThan", "Object", "None"),
)
_ACCEPTED = (
    "application/json",
    "application/yaml",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf",
    ";;;=",
    "é",
)
_APPS = "/apis/apps/v1/namespaces/default"
_CORE = "/api/v1/namespaces/default"
_NAMES = ("m", "p", "d", "q", "n", "b", "r", "things.example.com", "no-such")


def _seeds() -> list[tuple[str, dict[str, Any]]]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]}
    workload = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    stateful = {**workload, "serviceName": "s"}
    daemon = {key: workload[key] for key in ("selector", "template")}
    job = {"template": {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}}
    schema = {"type": "object", "properties": {"spec": {"type": "object"}}}
    version = {"name": "v1", "served": True, "storage": True}
    definition = {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing", "singular": "thing"},
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    rules = {"operations": ["CREATE"], "apiGroups": ["x.example.com"], "apiVersions": ["*"]}
    hook = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "failurePolicy": "Ignore",
        "rules": [{**rules, "resources": ["*"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    quota = {"metadata": {"name": "q"}, "spec": {"min": {"cpu": 1}, "max": {"cpu": 2}}}
    selector = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "Exists"}]}
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": "50%", "selector": selector}}
    limits = [{"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "2"}}]
    bound = pod("p", {"cpu": 1}, terminationGracePeriodSeconds=1, nodeName="node-0")
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    hooks = "/apis/admissionregistration.k8s.io/v1"
    volcano = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
    tasks = [{"name": "t", "replicas": 1, "template": template}]
    access = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return [
        (MAPS, config("m", a="b")),
        (PODS, pod("p", {"cpu": 1}, labels={"a": "b"})),
        (PODS, bound),
        (f"{PODS}/p/binding", {"target": {"kind": "Node", "name": "node-0"}}),
        (f"{PODS}/p/eviction", {"metadata": {"name": "p"}, "deleteOptions": {}}),
        (f"{PODS}/p/status", {"metadata": {"name": "p"}, "status": {"phase": "Running"}}),
        ("/api/v1/nodes", {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "1"}}}),
        ("/api/v1/namespaces", {"metadata": {"name": "other"}}),
        ("/api/v1/namespaces/other/finalize", {"metadata": {"name": "other"}, "spec": {}}),
        (f"{_CORE}/events", {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod"}}),
        (f"{_CORE}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "90"}}}),
        (f"{_CORE}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": limits}}),
        (f"{_CORE}/secrets", {"metadata": {"name": "s"}, "data": {"a": "Yg=="}}),
        (f"{_CORE}/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}),
        (f"{_CORE}/serviceaccounts", {"metadata": {"name": "s"}}),
        (f"{_CORE}/serviceaccounts/s/token", {"spec": {"audiences": ["a"]}}),
        (f"{_CORE}/persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": claim}),
        (f"{_CORE}/replicationcontrollers", {"metadata": {"name": "rc"}, "spec": workload}),
        (f"{_APPS}/deployments", {"metadata": {"name": "d"}, "spec": workload}),
        (f"{_APPS}/deployments/d/scale", {"metadata": {"name": "d"}, "spec": {"replicas": 2}}),
        (f"{_APPS}/replicasets", {"metadata": {"name": "r"}, "spec": workload}),
        (f"{_APPS}/statefulsets", {"metadata": {"name": "t"}, "spec": stateful}),
        (f"{_APPS}/daemonsets", {"metadata": {"name": "x"}, "spec": daemon}),
        ("/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": "j"}, "spec": job}),
        (
            "/apis/batch/v1/namespaces/default/cronjobs",
            {
                "metadata": {"name": "k"},
                "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job}},
            },
        ),
        (volcano, {"metadata": {"name": "v"}, "spec": {"minAvailable": 1, "tasks": tasks}}),
        ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget),
        ("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "c"}, "value": 1}),
        ("/apis/coordination.k8s.io/v1/namespaces/default/leases", {"metadata": {"name": "l"}}),
        ("/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/elasticquotas", quota),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition),
        ("/apis/example.com/v1/namespaces/default/things", {"metadata": {"name": "t"}, "spec": {}}),
        (
            f"{hooks}/validatingwebhookconfigurations",
            {"metadata": {"name": "h"}, "webhooks": [hook]},
        ),
        (f"{rbac}/clusterroles", {"metadata": {"name": "r"}, "rules": []}),
        ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", access),
        ("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}),
    ]


class Request:
    """A request, from a random generator."""

    def __init__(self, rng: random.Random) -> None:
        path, body = rng.choice(_SEEDS)
        self.path, self.method, self.form, self.accept = path, "POST", _FORMS[0], _FORMS[0]
        self.query: dict[str, str] = {}
        self.data = json.dumps(body).encode()
        if rng.random() < 0.2:
            return  # as it should be, so that there are objects to read and to change
        self.method = rng.choice(_METHODS if rng.random() < 0.1 else _WRITES)
        if _is_collection(path) and self.method != "POST" and rng.random() < 0.95:
            name = body.get("metadata", {}).get("name", "x")
            path += f"/{name if rng.random() < 0.9 else rng.choice(_NAMES)}"
            if rng.random() < 0.1:
                path += rng.choice(("/status", "/scale", "/log", "/eviction"))
        self.path = _spoilt_path(path, rng) if rng.random() < 0.05 else path
        changed: Any = copy.deepcopy(body)
        for _ in range(rng.randrange(4)):
            changed = spoil(changed, rng)
        self.form = rng.choice(_PATCHES if self.method == "PATCH" else _FORMS)
        if self.form == "application/json-patch+json" and rng.random() < 0.9:
            changed = _json_patch(changed, rng)
        self.data = encoded(changed, rng)
        if self.form.endswith("protobuf"):
            self.data = b"k8s\x00" + rng.randbytes(rng.randrange(100))
        self.query = _query(self.form, rng)
        self.accept = rng.choice(_ACCEPTED) if rng.random() < 0.1 else "application/json"

    def __str__(self) -> str:
        data = self.data if len(self.data) < 5000 else self.data[:500]
        return f"{self.method} {self.path} {self.query} {self.form!r} {self.accept!r} {data!r}"


_SEEDS = _seeds()


def _is_collection(path: str) -> bool:
    """Is it the path of a kind, not of a subresource?"""
    parts = path.removeprefix("/apis/").removeprefix("/api/").split("/")
    return len(parts) < 5 or ("namespaces" in parts and len(parts) == 5)


def _spoilt_path(path: str, rng: random.Random) -> str:
    parts = path.split("/")
    at = rng.randrange(1, len(parts))
    odd = str(rng.choice((*ODD, "..", "%00", "%ff", "%2f", "namespaces", "pods", "a" * 9000)))
    safe = odd.encode("utf-8", "replace").decode()
    parts[at] = quote(safe[:9000], safe="%")
    return "/".join(parts)


def _json_patch(body: Any, rng: random.Random) -> Any:
    operations = ("add", "remove", "replace", "move", "copy", "test", "x", None)
    places = (
        *("", "/", "/metadata/labels/x", "/spec", "/metadata/name", "/spec/containers/0", "/-"),
        *("/metadata/finalizers/-", "/~", "/~2", "a", "/spec/containers/99999999999999999999"),
    )
    steps = [
        {
            "op": rng.choice(operations),
            "path": rng.choice((*places, *(f"/{each}" for each in WORDS))),
            "from": rng.choice(places),
            "value": body,
        }
        for _ in range(rng.randrange(1, 4))
    ]
    return spoil(steps, rng) if rng.random() < 0.3 else steps


def _query(form: str, rng: random.Random) -> dict[str, str]:
    found = {"fieldManager": "m"} if form.endswith("apply-patch+yaml") else {}
    if rng.random() < 0.1:
        found["dryRun"] = "All"
    while rng.random() < 0.25:
        value = rng.choice(_WORTHY) if rng.random() < 0.7 else str(rng.choice(ODD))
        found[rng.choice(_QUERIES)] = value[:3000].encode("utf-8", "replace").decode()
    return found


def test_malformed_objects_are_answered(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with running(Settings(nodes=_NODES)) as server, connected(server) as client:
            rng = random.Random(_SEED)
            answers = await _campaign(server, rng)
            assert sum(answers.values()) == _REQUESTS
            assert answers[200] + answers[201] > _REQUESTS / 20, answers
            for _ in range(_ON_THE_WIRE):
                await _sent(client, Request(rng))
            assert (await client.get("/readyz"))[0] == 200
            made = await client.post("/api/v1/namespaces", {"metadata": {"name": "fine"}})
            assert made[0] == 201

    with caplog.at_level(logging.ERROR):
        asyncio.run(story())
    assert not caplog.records, caplog.text[:3000]


_NODES = ({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-0"}},)


async def _campaign(server: Server, rng: random.Random) -> Counter[int]:
    handler = Handler(Verbs(server.api), server.credentials.token)
    answers: Counter[int] = Counter()
    for _ in range(_REQUESTS):
        request = Request(rng)
        code, said = await _handled(handler, server.credentials.token, request)
        _check(request, code, said)
        answers[code] += 1
    return answers


async def _handled(handler: Handler, token: str, request: Request) -> tuple[int, Any]:
    """Call the handler; a watch is left after a moment, as a client would leave it."""
    loop = asyncio.get_running_loop()
    payload = streams.StreamReader(BaseProtocol(loop), 2**30, loop=loop)
    payload.feed_data(request.data)
    payload.feed_eof()
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": request.form,
        "Content-Length": str(len(request.data)),
        "Accept": request.accept,
    }
    query = "&".join(f"{key}={quote(value)}" for key, value in request.query.items())
    made = make_mocked_request(request.method, f"{request.path}?{query}", headers, payload=payload)
    assert isinstance(made.protocol, mock.Mock)
    try:
        async with asyncio.timeout(0.05 if "watch" in request.query else 60):
            answer = await handler.handle(made)
    except TimeoutError:
        assert "watch" in request.query, f"no answer: {request}"
        return 200, None
    if not isinstance(answer, web.Response) or not isinstance(answer.body, bytes):
        return answer.status, None
    return answer.status, _decoded(answer.body, answer.content_type)


def _decoded(body: bytes, form: str) -> Any:
    return json.loads(body) if form == "application/json" else None


async def _sent(client: Client, request: Request) -> None:
    try:
        async with asyncio.timeout(60):
            code, said = await client.call(
                request.method,
                request.path,
                request.data,
                request.form,
                **{key: each for key, each in request.query.items() if key != "watch"},
            )
    except (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError, ValueError):
        return
    if isinstance(said, dict):
        _check(request, code, said)


def _check(request: Request, code: int, said: Any) -> None:
    assert code != 500 or _expected(said), f"{request}: {said}"
    if isinstance(said, dict) and code >= 400:
        assert said["kind"] == "Status", f"{request}: {said}"
        assert said["code"] == code


def _expected(said: Any) -> bool:
    """Kubernetes itself answers 500 to these: two budgets, a webhook that is gone, a bad apply."""
    message = str(said["message"])
    words = ("more than one PodDisruption", "failed calling webhook", "typed patch object")
    return any(each in message for each in words)
