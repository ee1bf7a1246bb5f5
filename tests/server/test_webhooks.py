"""Admission webhooks: they may change and refuse, and silence counts as their policy says."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

from aiohttp import web

from aliquot.server.credentials import credentials
from tests.server.client import MAPS, Client, config, served

HOOKS = "/apis/admissionregistration.k8s.io/v1"


def test_webhooks_change_and_refuse(tmp_path: Path) -> None:
    async def story(client: Client, port: int) -> None:
        bundle = base64.b64encode((tmp_path / "ca.crt").read_bytes()).decode()
        for kind, path in (("mutating", "label"), ("validating", "judge")):
            body = _configuration(f"https://127.0.0.1:{port}/{path}", bundle)
            code, said = await client.post(f"{HOOKS}/{kind}webhookconfigurations", body)
            assert code == 201, said
        _, made = await client.post(MAPS, config("good"))
        assert made["metadata"]["labels"] == {"seen": "yes"}
        code, refused = await client.post(MAPS, config("bad"))
        assert code == 403
        assert refused["message"] == (
            'admission webhook "hook.example.com" denied the request: not this one'
        )

    asyncio.run(_with_hooks(tmp_path, story))


def test_a_webhook_that_does_not_answer(tmp_path: Path) -> None:
    async def story(client: Client, _: int) -> None:
        body = _configuration("https://127.0.0.1:1/", "")
        path = f"{HOOKS}/validatingwebhookconfigurations"
        await client.post(path, body)
        code, refused = await client.post(MAPS, config("a"))
        assert (code, refused["reason"]) == (500, "InternalError")
        assert 'failed calling webhook "hook.example.com"' in refused["message"]
        await client.delete(f"{path}/hook")
        body["webhooks"][0]["failurePolicy"] = "Ignore"
        await client.post(path, body)
        assert (await client.post(MAPS, config("a")))[0] == 201

    asyncio.run(_with_hooks(tmp_path, story))


async def _with_hooks(folder: Path, story: Any) -> None:
    server = web.Server(_answer)
    runner = web.ServerRunner(server)
    await runner.setup()
    context = credentials(folder, "127.0.0.1").context()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        async with served() as client:
            await story(client, runner.addresses[0][1])
    finally:
        await runner.cleanup()


async def _answer(request: web.BaseRequest) -> web.Response:
    asked = (json.loads(await request.read()))["request"]
    response: dict[str, Any] = {"uid": asked["uid"], "allowed": True}
    if request.path == "/label":
        patch = [{"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}}]
        encoded = base64.b64encode(json.dumps(patch).encode()).decode()
        response |= {"patchType": "JSONPatch", "patch": encoded}
    elif asked["name"] == "bad":
        response |= {"allowed": False, "status": {"message": "not this one"}}
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    return web.json_response(body)


def _configuration(url: str, bundle: str) -> dict[str, Any]:
    rule = {
        "operations": ["CREATE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["configmaps"],
    }
    hook: dict[str, Any] = {
        "name": "hook.example.com",
        "clientConfig": {"url": url, **({"caBundle": bundle} if bundle else {})},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 2,
    }
    return {"metadata": {"name": "hook"}, "webhooks": [hook]}
