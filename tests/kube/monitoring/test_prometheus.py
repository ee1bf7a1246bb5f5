"""A Prometheus scrapes two control planes and a webhook that run, and every panel has data.

One plane has quotas that borrow and reclaim, a gang, and a quota on GPUs; the other has queues.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from aliquot.bench.envtest import free_ports
from aliquot.dialects.configuration import Configuration
from aliquot.kube.api import access
from aliquot.kube.api.client import Client
from aliquot.kube.control.control_plane import control_plane
from aliquot.kube.install.monitoring import all_rules
from aliquot.kube.monitoring import accounting, alerts
from aliquot.kube.monitoring.accounting import Periods
from aliquot.kube.monitoring.alerts import Bounds
from aliquot.kube.monitoring.rules import file
from aliquot.kube.webhook import app as webhook
from aliquot.local.cluster import Reach, local_cluster, plane_settings
from aliquot.server.app import Settings, running
from tests.build.manifests import (
    annotated,
    gpu_quota,
    limited_pod,
    namespace,
    pod_group,
    queue,
    quota,
    ready_node,
)
from tests.kube.monitoring.promtool import (
    PROMETHEUS,
    needs_prometheus,
    needs_promtool,
    promtool,
    written,
)
from tests.kube.monitoring.queries import panels

HOST = "127.0.0.1"
PERIODS = Periods(1, 3)
CHOSEN = {"$__rate_interval": "15s", "$__range": "10m", "$resource": "nvidia.com/gpu"}
CHOSEN |= {"$quota": ".*"}
_PATIENCE = 60
"""Seconds until the rules of a month have caught up: they are evaluated every second."""
Ask = Callable[[str], Awaitable[list[Any]]]


@needs_prometheus
@needs_promtool
def test_every_panel_has_data_and_every_rule_is_healthy(tmp_path: Path) -> None:
    asyncio.run(asyncio.wait_for(_story(tmp_path), 300))


async def _story(folder: Path) -> None:
    hooked, port = free_ports(2)
    async with (
        _teams(folder / "teams", hooked) as teams,
        _queues(folder / "queues") as queues,
        _prometheus(folder, port, [teams.port, queues.port, hooked]) as ask,
    ):
        await _until(ask, "count(up == 1) == 3")
        await _play_teams(teams.client)
        await _play_queues(queues.client)
        await _until(ask, 'sum(aliquot_evictions_total{reason="ReclaimedForMin"}) >= 1')
        await _until(ask, f'{accounting.TOTAL}{{figure="used"}} > 0')
        await _until(ask, f'{accounting.TOTAL}{{figure="lost"}} > 0')
        empty = [each async for each in _empty(ask)]
        if empty:  # rates and quantiles need two scrapes since
            await asyncio.sleep(5)
            empty = [each async for each in _empty(ask)]
        assert empty == []
        await _rules_are_healthy(port)
        await _accounts_add_up(ask)


async def _empty(ask: Ask) -> AsyncIterator[tuple[str, str]]:
    """The panels and expressions that have nothing to show, or only values that are none."""
    for panel in panels():
        for target in panel["targets"]:
            expression = target["expr"]
            for word, value in CHOSEN.items():
                expression = expression.replace(word, value)
            found = await ask(expression)
            if not [each for each in found if each["value"][1] != "NaN"]:
                yield panel["title"], expression


async def _rules_are_healthy(port: int) -> None:
    async with aiohttp.ClientSession() as session:
        answer = await session.get(f"http://{HOST}:{port}/api/v1/rules")
        found = (await answer.json())["data"]["groups"]
    assert {each["name"] for each in found} >= {"aliquot-alerts", "aliquot-accounting"}
    for group in found:
        for rule in group["rules"]:
            assert (rule["health"], rule.get("lastError", "")) == ("ok", ""), rule["name"]


async def _accounts_add_up(ask: Ask) -> None:
    """The month has what its parts have, but for those since the last full hour.

    On a busy machine the rules of the month come late; they catch up.
    """
    problem: object = "not asked yet"
    for _ in range(_PATIENCE):
        problem = await _difference(ask)
        if problem is None:
            return
        await asyncio.sleep(1)
    raise AssertionError(problem)


async def _difference(ask: Ask) -> object:
    """The quotas of the month and of its parts, if they differ by more than a half."""
    parts = await ask(f'sum by (quota) (sum_over_time({accounting.HOURS}:1m{{figure="used"}}[1h]))')
    totals = await ask(f'sum by (quota) ({accounting.TOTAL}{{figure="used"}})')
    by_part = {each["metric"]["quota"]: float(each["value"][1]) for each in parts}
    by_total = {each["metric"]["quota"]: float(each["value"][1]) for each in totals}
    near = all(by_part[name] == pytest.approx(by_total[name], rel=0.5) for name in by_total)
    return None if near and by_part["borrower/quota"] > 0 else (by_part, by_total)


@dataclass(frozen=True, slots=True)
class Scraped:
    """A control plane that runs: where its metrics are, and a client of its cluster."""

    port: int
    client: Client


@asynccontextmanager
async def _teams(folder: Path, hooked: int) -> AsyncIterator[Scraped]:
    """A cluster with a webhook whose metrics are served, too."""
    configuration = Configuration()
    own = plane_settings(configuration, None, HOST, 0)
    asked = webhook.Settings(configuration, url="", health_port=hooked)
    nodes = tuple(ready_node(name, gpu=4) for name in ("n1", "n2"))
    async with running(Settings(folder, nodes=nodes)) as server:
        reach: Reach = Reach(access.find, server.kubeconfig)
        async with Client(reach(), connections=4) as client:
            await client.post("/api/v1/namespaces", namespace(asked.namespace))
            async with webhook.webhook(client, asked) as hook, control_plane(reach, own) as plane:
                await hook.ready.wait()
                yield Scraped(await _listening(plane), client)


@asynccontextmanager
async def _queues(folder: Path) -> AsyncIterator[Scraped]:
    own = plane_settings(Configuration(), "queues", HOST, 0)
    settings = Settings(folder, nodes=(ready_node("n1", gpu=4),))
    async with local_cluster(settings, own) as made, Client(made.reach(), 4) as client:
        assert made.plane is not None
        yield Scraped(await _listening(made.plane), client)


async def _listening(plane: Any) -> int:
    while not plane.probes.port:
        await asyncio.sleep(0.05)
    return int(plane.probes.port)


@asynccontextmanager
async def _prometheus(folder: Path, port: int, targets: list[int]) -> AsyncIterator[Ask]:
    """A Prometheus with the rules, which scrapes these every second."""
    rules = all_rules(Bounds())
    quick = [*alerts.groups(Bounds()), *alerts.webhook_groups()]
    quick += accounting.groups(periods=PERIODS)
    assert len(rules["groups"]) == len(quick)
    written(folder / "rules.yaml", file(quick))
    scraped = [{"targets": [f"{HOST}:{each}" for each in targets]}]
    seconds = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    body = {
        "global": seconds,
        "rule_files": [str(folder / "rules.yaml")],
        "scrape_configs": [{"job_name": "aliquot", "static_configs": scraped}],
    }
    settings = written(folder / "prometheus.yaml", body)
    promtool("check", "config", settings)
    command = [str(PROMETHEUS), f"--config.file={settings}", f"--web.listen-address={HOST}:{port}"]
    command += [f"--storage.tsdb.path={folder / 'data'}", "--log.level=warn"]
    with (folder / "prometheus.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
        try:
            async with aiohttp.ClientSession(f"http://{HOST}:{port}") as session:

                async def ask(expression: str) -> list[Any]:
                    answer = await session.get("/api/v1/query", params={"query": expression})
                    said = json.loads(await answer.text())
                    assert said["status"] == "success", (expression, said)
                    found: list[Any] = said["data"]["result"]
                    return found

                await _ready(session)
                yield ask
        finally:
            process.kill()  # its data goes with the test
            await asyncio.wait_for(process.wait(), 30)


async def _ready(session: aiohttp.ClientSession) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                answer = await session.get("/-/ready")
                if answer.status == 200:
                    return
            except aiohttp.ClientConnectionError:
                pass
            await asyncio.sleep(0.1)


async def _until(ask: Ask, expression: str) -> None:
    """Until this has a result."""
    async with asyncio.timeout(90):
        while not await ask(expression):
            await asyncio.sleep(0.25)


async def _play_teams(client: Client) -> None:
    """One team borrows all that the other leaves idle, and the other takes it back."""
    kep9 = "/apis/scheduling.x-k8s.io/v1alpha1"
    for team in ("owner", "borrower", "cards"):
        await client.post("/api/v1/namespaces", namespace(team))
    for team in ("owner", "borrower"):
        body = quota(team, {"gpu": 4}, {"gpu": 8})
        await client.post(f"{kep9}/namespaces/{team}/elasticquotas", body)
    fusion = "/apis/tensor-fusion.ai/v1"
    limits = {"requests": {"tflops": "200", "vram": "20Gi"}, "workers": 4}
    await client.post(f"{fusion}/namespaces/cards/gpuresourcequotas", gpu_quota("cards/q", limits))
    for number in range(8):
        await _pod(client, limited_pod(f"borrower/p-{number}", 1))
    await asyncio.sleep(3)  # what is lost with them takes a while to be worth counting
    group = pod_group("owner/gang", "scheduling.x-k8s.io/v1alpha1", minMember=2)
    await client.post(f"{kep9}/namespaces/owner/podgroups", group)
    labels = {"scheduling.x-k8s.io/pod-group": "gang"}
    for number in range(2):
        await _pod(client, limited_pod(f"owner/g-{number}", 1, labels=labels))
    await _pod(client, limited_pod("owner/waits", 6))


async def _play_queues(client: Client) -> None:
    volcano = "/apis/scheduling.volcano.sh/v1beta1"
    for name in ("research", "product"):
        await client.post(f"{volcano}/queues", queue(name, weight=1))
    for number, name in enumerate(("research", "research", "product")):
        body = limited_pod(f"default/q-{number}", 1)
        await _pod(client, annotated(body, queue=name))


async def _pod(client: Client, body: dict[str, Any]) -> None:
    body["spec"]["terminationGracePeriodSeconds"] = 0
    await client.post(f"/api/v1/namespaces/{body['metadata']['namespace']}/pods", body)
