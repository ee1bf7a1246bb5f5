"""What the probes answer, over HTTP, from the background loop."""

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from aliquot.errors import InputError
from aliquot.kube.observe.background_loop import BackgroundLoop
from aliquot.kube.observe.health import Health
from aliquot.kube.observe.metrics import Metrics
from aliquot.kube.observe.probes import Probes

Answer = tuple[int, str, str]
Get = Callable[..., Awaitable[Answer]]


def asking(health: Health, story: Callable[[Get], Awaitable[None]]) -> None:
    """Run a story that asks a server of its own."""

    async def run() -> None:
        probes = Probes(health, Metrics().registry, 0, "127.0.0.1")
        async with BackgroundLoop(probes.run), aiohttp.ClientSession() as session:
            while not probes.port:
                await asyncio.sleep(0.01)

            async def get(path: str, **headers: str) -> Answer:
                url = f"http://127.0.0.1:{probes.port}{path}"
                async with session.get(url, headers=headers) as answer:
                    form = answer.headers["Content-Type"]
                    return answer.status, await answer.text(), form

            await story(get)

    asyncio.run(run())


@pytest.mark.parametrize("path", ["/livez", "/healthz"])
def test_alive_is_a_main_loop_that_comes_by(path: str) -> None:
    health = Health()

    async def story(get: Get) -> None:
        assert (await get(path))[:2] == (200, "ok")
        health.patience = 0.01
        health.beat("decide")
        time.sleep(0.05)
        code, text, _ = await get(path)
        assert code == 503
        words = r"\[-\]main-loop last seen \d+\.\d s ago, 0\.01 s allowed, about to: decide"
        assert re.search(words, text)
        health.patience = 60.0
        assert (await get(path))[0] == 200

    asking(health, story)


def test_one_that_should_decide_and_does_not_is_not_alive() -> None:
    """Its loop beats, but no cycle is completed: its engine fails again and again."""
    health = Health(patience=0.01)

    async def story(get: Get) -> None:
        health.expect_decision(True)
        await asyncio.sleep(0.05)
        health.beat()
        code, text, _ = await get("/livez")
        assert code == 503
        assert re.search(r"\[-\]decisions a cycle is due for \d+\.\d s, 0\.01 s allowed", text)
        health.expect_decision(False)
        health.patience = 60.0
        assert (await get("/livez"))[0] == 200

    asking(health, story)


def test_ready_is_one_that_has_seen_everything_it_waits_for() -> None:
    health = Health()

    async def story(get: Get) -> None:
        health.expect("pods")
        health.expect("nodes")
        health.met("nodes")
        code, text, _ = await get("/readyz")
        assert code == 503
        assert text == "[+]nodes met\n[-]pods waited for\nreadyz check failed\n"
        health.met("pods")
        assert (await get("/readyz"))[:2] == (200, "ok")
        _, text, _ = await get("/readyz?verbose")
        assert text == "[+]nodes met\n[+]pods met\nreadyz check passed\n"
        health.expect("pods")
        assert (await get("/readyz"))[0] == 503

    asking(health, story)


def test_verbose_lists_the_checks_of_one_that_is_well() -> None:
    async def story(get: Get) -> None:
        code, text, _ = await get("/livez?verbose")
        assert code == 200
        assert text.startswith("[+]main-loop last seen 0.")
        assert text.endswith("livez check passed\n")

    asking(Health(), story)


def test_a_busy_main_loop_is_not_a_dead_one() -> None:
    """The answer comes while the main loop is away."""
    health = Health(patience=60)

    async def run() -> None:
        probes = Probes(health, Metrics().registry, 0, "127.0.0.1")
        answers: list[tuple[int, float]] = []

        async def kubelet() -> None:
            while not probes.port:
                await asyncio.sleep(0.01)
            url = f"http://127.0.0.1:{probes.port}/livez"
            async with aiohttp.ClientSession() as session, session.get(url) as answer:
                answers.append((answer.status, time.monotonic()))

        async with BackgroundLoop(probes.run, kubelet):
            end = time.monotonic() + 1.5
            while time.monotonic() < end:  # deciding
                pass
            assert [status for status, at in answers if at < end] == [200]

    asyncio.run(run())


def test_metrics_come_as_prometheus_asks_for_them() -> None:
    async def story(get: Get) -> None:
        code, text, form = await get("/metrics")
        assert (code, form.split(";")[0]) == (200, "text/plain")
        assert "aliquot_build_info{" in text
        _, text, form = await get("/metrics", Accept="application/openmetrics-text; version=1.0.0")
        assert form.startswith("application/openmetrics-text")
        assert "# TYPE aliquot_decisions counter\n" in text
        assert text.endswith("# EOF\n")

    asking(Health(), story)


def test_invariants_say_what_was_found_and_when() -> None:
    health = Health()

    async def story(get: Get) -> None:
        _, text, form = await get("/debug/invariants")
        assert form.startswith("application/json")
        assert json.loads(text) == {"checkedAt": None, "violations": []}
        health.invariants("quota a: used 3, the pods in it hold 2")
        _, text, _ = await get("/debug/invariants")
        found = json.loads(text)
        assert found["violations"] == ["quota a: used 3, the pods in it hold 2"]
        assert found["checkedAt"].endswith("Z")
        health.invariants()
        assert json.loads((await get("/debug/invariants"))[1])["violations"] == []
        assert (await get("/livez"))[0] == 200

    asking(health, story)


def test_the_index_lists_what_there_is() -> None:
    async def story(get: Get) -> None:
        code, text, _ = await get("/")
        assert code == 200
        for line in text.splitlines():
            assert (await get(line.split()[0]))[0] == 200
        assert (await get("/nothing"))[0] == 404

    asking(Health(), story)


def test_a_port_that_is_taken_is_a_failure_the_main_loop_hears_of() -> None:
    async def run() -> None:
        first = Probes(Health(), Metrics().registry, 0, "127.0.0.1")
        async with BackgroundLoop(first.run):
            while not first.port:
                await asyncio.sleep(0.01)
            second = Probes(Health(), Metrics().registry, first.port, "127.0.0.1")
            async with BackgroundLoop(second.run) as beside:
                await beside.failed()

    with pytest.raises(InputError, match=r"probes: port \d+: address already in use"):
        asyncio.run(run())
