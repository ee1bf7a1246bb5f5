"""The page of a real server that asks roles: each token is shown what its user may list."""

import asyncio
import json
from typing import Any

import aiohttp

from aliquot.dashboard.app import Answer
from aliquot.dashboard.service import Settings, dashboard_of
from aliquot.json import Body
from aliquot.kube.api import access
from tests.build.manifests import limited_pod, namespace
from tests.cluster.api.kubectl import Kubectl
from tests.cluster.api.objects import thing
from tests.cluster.api.polling import eventually
from tests.cluster.api.servers import Server
from tests.cluster.api.wire import Wire

OURS, OTHERS = "page-ours", "page-others"
ROLES = "rbac.authorization.k8s.io"


def test_a_token_sees_what_is_in_the_namespaces_whose_pods_it_may_list(
    real: Server, api: Wire, installed: Kubectl
) -> None:
    installed("apply", "-f", "-", documents=list(_objects()))
    asked = ["auth", "can-i", "list", "pods", "-n", OURS]
    asked.append(f"--as=system:serviceaccount:{OURS}:reader")
    eventually(lambda: installed.run(*asked).code == 0)
    tokens = {name: _token(api, name) for name in ("reader", "stranger")}
    asyncio.run(asyncio.wait_for(_look(real, tokens), 120))


async def _look(server: Server, tokens: dict[str, str]) -> None:
    settings = Settings(protected=True)
    found = access.find(server.kubeconfig)
    async with (
        dashboard_of(lambda: found, settings, _Oracle()) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
    ):
        assert await _stream(session, "") == 401
        assert await _stream(session, "wrong") == 401
        shown = await _shown(session, tokens["reader"])
        assert {row["pod"] for row in shown["waiting"]["set"].values()} == {f"{OURS}/seen"}
        assert shown["quotas"]["set"] == shown["nodes"]["set"] == {}  # default/gpus is there
        assert OTHERS not in json.dumps(shown)
        assert await _stream(session, tokens["stranger"]) == 403


async def _shown(session: aiohttp.ClientSession, token: str) -> dict[str, Any]:
    """What the page shows of everything, once the cluster has been read."""
    while True:
        found = await _stream(session, token)
        if isinstance(found, dict) and found.get("waiting", {}).get("set"):
            return found
        await asyncio.sleep(0.1)


async def _stream(session: aiohttp.ClientSession, token: str) -> int | dict[str, Any]:
    """The first frame of the stream, or the status of a refusal."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with session.get("/api/stream", headers=headers) as answer:
        if answer.status != 200:
            return answer.status
        line = (await answer.content.readuntil(b"\n\n")).decode()
        frame: dict[str, Any] = json.loads(line.removeprefix("data: "))
        return frame


class _Oracle:
    async def explain(self, pod: str) -> Answer:
        raise AssertionError(pod)

    async def what_if(self, change: Answer) -> Answer:
        raise AssertionError(change)


def _objects() -> list[Body]:
    role: Body = {
        "apiVersion": f"{ROLES}/v1",
        "kind": "Role",
        "metadata": {"name": "lists-pods", "namespace": OURS},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}],
    }
    binding: Body = {
        "apiVersion": f"{ROLES}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "reader-lists-pods", "namespace": OURS},
        "roleRef": {"apiGroup": ROLES, "kind": "Role", "name": "lists-pods"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": OURS}],
    }
    accounts = [thing("ServiceAccount", OURS, name) for name in ("reader", "stranger")]
    default = [thing("ServiceAccount", each, "default") for each in (OURS, OTHERS)]
    return [
        *(namespace(each) for each in (OURS, OTHERS)),
        *(*default, *accounts, role, binding),
        *(limited_pod(f"{OURS}/seen", 1), limited_pod(f"{OTHERS}/unseen", 1)),
    ]


def _token(api: Wire, name: str) -> str:
    where = f"/api/v1/namespaces/{OURS}/serviceaccounts/{name}/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    return str(api.post(where, body).done(201)["status"]["token"])
