"""Whatever is sent, the server answers, never with a defect of its own, and goes on.

The time is bounded: 10 s in a sample, 60 s in the whole campaign, or ALIQUOT_FUZZ_SECONDS.
"""

import asyncio
import copy
import json
import os
import random
import time
from typing import Any

import aiohttp

from tests.build.manifests import pod
from tests.campaign import seconds
from tests.server.client import MAPS, PODS, Client, config, served

_SECONDS = seconds(5, 60)
_SEED = os.environ.get("ALIQUOT_FUZZ_SEED", "aliquot")
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_FORMS = (
    "application/json",
    "application/json",
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "text/plain",
    "",
)
_ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**63,
    1.5,
    1e308,
    "",
    "x",
    "\x00",
    "é" * 300,
    "../..",
    "9" * 500,
    [],
    {},
    [[]],
    [None],
    {"": ""},
    {"a": {"b": [{"c": None}]}},
)
_META = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_APPS = "/apis/apps/v1/namespaces/default"


def _seeds() -> list[tuple[str, dict[str, Any]]]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]}
    workload = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    definition = {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing", "singular": "thing"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
    }
    hook = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "failurePolicy": "Ignore",
        "rules": [
            {
                "operations": ["CREATE"],
                "apiGroups": ["example.com"],
                "apiVersions": ["*"],
                "resources": ["*"],
            }
        ],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    quota = {"metadata": {"name": "q"}, "spec": {"min": {"cpu": 1}, "max": {"cpu": 2}}}
    budget = {
        "metadata": {"name": "b"},
        "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}},
    }
    hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    return [
        (MAPS, config("m", a="b")),
        (PODS, pod("p", terminationGracePeriodSeconds=1, nodeName="node-0")),
        (f"{PODS}/p/binding", {"target": {"kind": "Node", "name": "node-0"}}),
        (f"{PODS}/p/eviction", {"metadata": {"name": "p"}, "deleteOptions": {}}),
        (f"{PODS}/p/status", {"metadata": {"name": "p"}, "status": {"phase": "Running"}}),
        ("/api/v1/nodes", {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "1"}}}),
        ("/api/v1/namespaces", {"metadata": {"name": "other"}}),
        ("/api/v1/namespaces/default/events", {"metadata": {"name": "e"}, "reason": "x"}),
        ("/api/v1/namespaces/default/resourcequotas", {"spec": {"hard": {"configmaps": "900"}}}),
        ("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}, "data": {"a": "Yg=="}}),
        (f"{_APPS}/deployments", {"metadata": {"name": "d"}, "spec": workload}),
        (f"{_APPS}/deployments/d/scale", {"spec": {"replicas": 2}}),
        (f"{_APPS}/replicasets", {"metadata": {"name": "r"}, "spec": workload}),
        (
            "/apis/batch/v1/namespaces/default/jobs",
            {"metadata": {"name": "j"}, "spec": {"template": template}},
        ),
        ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget),
        ("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "c"}, "value": 1}),
        ("/apis/coordination.k8s.io/v1/namespaces/default/leases", {"metadata": {"name": "l"}}),
        ("/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/elasticquotas", quota),
        (_META, definition),
        (hooks, {"metadata": {"name": "h"}, "webhooks": [hook]}),
    ]


def test_nothing_that_is_sent_brings_the_server_down() -> None:
    async def story() -> None:
        rng = random.Random(_SEED)
        async with served() as client:
            until = time.monotonic() + _SECONDS
            workers = [_attack(client, random.Random(rng.random()), until) for _ in range(8)]
            count = sum(await asyncio.gather(*workers))
            assert count > 50 * _SECONDS
            assert (await client.get("/readyz"))[0] == 200
            assert (await client.post("/api/v1/namespaces", {"metadata": {"name": "fine"}}))[
                0
            ] == 201

    asyncio.run(story())


async def _attack(client: Client, rng: random.Random, until: float) -> int:
    count = 0
    while time.monotonic() < until:
        path, body = rng.choice(_seeds())
        method = rng.choice(_METHODS)
        if method not in ("POST",) and path.count("/") % 2 and rng.random() < 0.8:
            path += f"/{rng.choice(('m', 'p', 'd', 'q', 'n'))}"
        for _ in range(rng.randrange(4)):
            body = _spoil(body, rng)
        form = rng.choice(_FORMS)
        data = _bytes(body, form, rng)
        query = {"dryRun": "All"} if rng.random() < 0.1 else {}
        if rng.random() < 0.1:
            word = rng.choice(("labelSelector", "fieldSelector", "limit", "continue", "dryRun"))
            query[word] = str(rng.choice(_ODD))
        try:
            code, said = await client.call(method, path, data, form, **query)
        except (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError):
            continue
        assert code < 500 or (code in (500, 504) and _expected(said)), (method, path, data, said)
        if isinstance(said, dict) and code >= 400:
            assert said["kind"] == "Status"
            assert said["code"] == code
        count += 1
    return count


def _expected(said: Any) -> bool:
    """A webhook that does not answer, and a pod with two budgets, are not defects of ours."""
    message = str(said["message"])
    return any(
        words in message for words in ("webhook", "more than one PodDisruption", "Too large")
    )


def _bytes(body: Any, form: str, rng: random.Random) -> bytes:
    if rng.random() < 0.05:
        return rng.randbytes(rng.randrange(200))
    if rng.random() < 0.02:
        return b'{"a":' * 2000
    if form.endswith("protobuf"):
        return b"k8s\x00" + rng.randbytes(rng.randrange(100))
    try:
        text = json.dumps(body).encode()
    except ValueError:
        return b"{}"
    if rng.random() < 0.05:
        at = rng.randrange(len(text) + 1)
        return text[:at] + rng.randbytes(3) + text[at:]
    return text


def _spoil(body: Any, rng: random.Random) -> Any:
    """Put something odd somewhere."""
    spoiled = copy.deepcopy(body)
    holders: list[Any] = []
    _gather(spoiled, holders)
    if not holders:
        return rng.choice(_ODD)
    holder = rng.choice(holders)
    key = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    holder[key] = copy.deepcopy(rng.choice(_ODD))
    return spoiled


def _gather(value: Any, holders: list[Any]) -> None:
    if isinstance(value, dict | list) and value:
        holders.append(value)
        for each in value.values() if isinstance(value, dict) else value:
            _gather(each, holders)
