"""The webhook in the same process as the API server that asks it."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from aliquot import certificates
from aliquot.certificates import Pair
from aliquot.errors import ApiError
from aliquot.kube.api import access
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import CUSTOM, MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS
from aliquot.kube.webhook.app import Settings, WebhookApp, webhook
from aliquot.kube.webhook.cert_secret import CertSecret
from aliquot.kube.webhook.identity import of_secret
from aliquot.server.app import running
from tests.build.manifests import quota

QUOTAS = CUSTOM["elasticquotas.scheduling.x-k8s.io"]
Story = Callable[[Client, WebhookApp], Awaitable[None]]


def inside(story: Story, settings: Settings | None = None, end: Story | None = None) -> None:
    async def run() -> None:
        async with running() as server, Client(access.find(server.kubeconfig)) as client:
            async with webhook(client, settings or Settings(url="")) as hook:
                await asyncio.wait_for(hook.ready.wait(), 60)
                await story(client, hook)
            if end is not None:
                await end(client, hook)

    asyncio.run(run())


async def _refused(client: Client) -> str:
    with pytest.raises(ApiError) as refusal:
        await client.post(QUOTAS.path("default"), quota("default/q", {"cpu": 4}, {"cpu": 2}))
    assert refusal.value.code == 403
    return refusal.value.message


def test_it_judges_and_leaves_nothing_behind() -> None:
    async def story(client: Client, hook: WebhookApp) -> None:
        assert "min 4 is above max 2" in await _refused(client)
        await client.post(QUOTAS.path("default"), quota("default/q", {"cpu": 1}))

    async def end(client: Client, hook: WebhookApp) -> None:
        for resource in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS):
            assert (await client.get(resource.path()))["items"] == []
        await client.post(QUOTAS.path("default"), quota("default/r", {"cpu": 4}, {"cpu": 2}))

    inside(story, end=end)


def test_a_certificate_is_kept_where_others_find_it() -> None:
    async def story(client: Client, hook: WebhookApp) -> None:
        where = SECRETS.path("aliquot-system", "aliquot-webhook-certificate")
        kept = of_secret(await client.get(where))
        assert kept is not None
        assert hook.registration.bundle == kept.bundle
        names = ["aliquot-webhook.aliquot-system.svc", "127.0.0.1"]
        assert certificates.covers(kept.certificate, names)

    inside(story)


def test_of_many_that_begin_at_once_one_makes_the_certificate() -> None:
    async def story(client: Client, hook: WebhookApp) -> None:
        keepers = [
            CertSecret(client, "elsewhere", "shared", ["hook.elsewhere.svc"]) for _ in range(5)
        ]
        found = await asyncio.gather(*(each.identity() for each in keepers))
        assert len(set(found)) == 1
        renamed = CertSecret(client, "elsewhere", "shared", ["other.elsewhere.svc"])
        other = await renamed.identity()
        assert other.authorities == found[0].authorities
        assert other.certificate != found[0].certificate

    inside(story)


def test_files_that_are_given_are_used(tmp_path: Path) -> None:
    pair = _given(tmp_path)

    async def story(client: Client, hook: WebhookApp) -> None:
        secret = SECRETS.path("aliquot-system", "aliquot-webhook-certificate")
        with pytest.raises(ApiError):
            await client.get(secret)
        assert certificates.validity(pair.certificate)[1].timestamp() == (
            hook.metrics.registry.get_sample_value("aliquot_webhook_certificate_expiry_seconds")
        )

    files = (tmp_path / "tls.crt", tmp_path / "tls.key")
    inside(story, Settings(files=files))


def _given(folder: Path) -> Pair:
    now, lasts = datetime.now(UTC), timedelta(days=1)
    authority = certificates.make_authority("somebody", now, lasts)
    pair = certificates.issue_serving(authority, "hook", ["127.0.0.1"], now, lasts)
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)
    return pair
